"""Examples of Streamling with plugins: what becomes of rows, by packages on our own contracts."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kaflow_engine.testing.cases.cases import run_case
from kaflow_engine.testing.cases.executor import LocalExecutor
from kaflow_engine.testing.cases.files import load_cases
from kaflow_engine.testing.cases.pipeline import Surroundings
from kaflow_engine.testing.cases.report import report_lines
from tests.engine.plan.test_streamling import FIXTURES
from tests.plugins.basic_plugin import row_of

pytestmark = pytest.mark.usefixtures("example_plugins")

AT = "2026-01-01T00:00:00Z"
CONFIG = {"postgres": {"connections": {"postgres_sink": {"url": "postgresql://u@localhost/d"}}}}


def run(folder: Path, example: str, given: list[Any], expect: list[Any], topics: Any) -> None:
    case = {
        "case": example,
        "pipeline": str(FIXTURES / "seed" / f"{example}.yaml"),
        "config": CONFIG,
        "topics": topics,
        "cuts": "given",
        "given": given,
        "expect": expect,
    }
    path = folder / "cases.yaml"
    path.write_text(yaml.safe_dump([case]))
    (loaded,) = load_cases(path, {})
    result = run_case(loaded, LocalExecutor(), around=Surroundings(variables={}))
    assert result.passed, "\n".join(report_lines(result))


def test_a_source_of_a_package(tmp_path: Path) -> None:
    rows = [row_of(n) for n in range(20)]
    rows[5]["_gs_op"], rows[6]["_gs_op"] = "u", "d"
    given = [{"topic": "orders", "at": AT, "value": row} for row in rows]
    expect = [
        {"key": row["alphanumeric_field"], "value": {k: row[k] for k in row if k != "_gs_op"}}
        for row in rows
        if int(row["num_field"]) > 100 and row["_gs_op"] != "d"
    ]
    assert 0 < len(expect) < 20
    run(tmp_path, "custom_source", given, expect, {})


def test_a_transform_of_a_package_keeps_inserts_only(tmp_path: Path) -> None:
    given = [
        {"topic": "raw.events", "at": AT, "headers": {"dbz.op": op}, "value": {"id": n, "v": op}}
        for n, op in ((1, "c"), (2, "c"), (1, "u"), (2, "d"), (3, "r"))
    ]
    expect = [
        {"key": str(n), "value": {"id": n, "v": op}} for n, op in ((1, "c"), (2, "c"), (3, "r"))
    ]
    topics = {"raw.events": {"id": "BIGINT", "v": "VARCHAR"}}
    run(tmp_path, "custom_transform", given, expect, topics)


def test_a_sink_of_a_package(tmp_path: Path) -> None:
    given = [
        {"topic": "app.events", "at": AT, "headers": {"dbz.op": op}, "value": {"id": 1, "v": op}}
        for op in ("c", "u", "d")
    ]
    expect = [
        {"topic": "streamling.print_sink:partner_out", "key": "1", "value": value}
        for value in ({"id": 1, "v": "c"}, {"id": 1, "v": "u"}, None)
    ]
    topics = {"app.events": {"id": "BIGINT", "v": "VARCHAR"}}
    run(tmp_path, "custom_sink", given, expect, topics)
