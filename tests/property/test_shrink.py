"""A failing scenario becomes a small one that fails in the same way and can be added as a row."""

# pyright: basic

from dataclasses import replace
from pathlib import Path

import pytest

from kaflow_engine.testing.cases.cases import run_case
from kaflow_engine.testing.cases.executor import LocalExecutor
from kaflow_engine.testing.cases.files import load_cases
from tests.property import check, executor
from tests.property.executor import How, Seen
from tests.property.scenario import Scenario, Writing
from tests.property.shrink import shrink
from tests.property.strategies import random_scenario
from tests.property.test_against_oracle import check as check_seed


def test_what_does_not_matter_goes() -> None:
    def has_a_null_on_partition_0(scenario: Scenario, how: How) -> bool:
        driving = {chain.driving_topic for chain in scenario.pipeline.chains}
        records = (r for r in scenario.records if r.topic in driving)
        return any(r.value is None and r.raw is None for r in records)

    seed = next(s for s in range(50) if has_a_null_on_partition_0(random_scenario(s), How()))
    small, how = shrink(random_scenario(seed), How.of(seed), has_a_null_on_partition_0)
    assert how == How()
    assert len(small.records) == 1
    assert [chain.joins for chain in small.pipeline.chains] == [()]
    assert [write.where for write in small.pipeline.writes] == [()]
    assert small.writing == Writing()


def test_a_failure_is_printed_as_a_case_that_can_be_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = executor.seen_by_engine

    def loses_a_row(*args: object, **options: object) -> Seen:
        seen = real(*args, **options)  # type: ignore[arg-type]
        return replace(seen, rows=tuple({} for _ in seen.rows))

    monkeypatch.setattr(check, "seen_by_engine", loses_a_row)
    seed = next(seed for seed in range(50) if random_scenario(seed).interpret().rows)
    with pytest.raises(pytest.fail.Exception, match="as a case of a case file") as failure:
        check_seed(seed)
    monkeypatch.undo()
    text = str(failure.value).split("as a case of a case file:\n\n")[1]
    file = tmp_path / "found.yaml"
    file.write_text(text)
    (case,) = load_cases(file, {})
    assert len(case.given) == 1
    assert run_case(case, LocalExecutor()).passed
