"""`kaflow explain`: all pipelines or the named ones, without a broker."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner, Result

from kaflow_engine.cli import explain
from kaflow_engine.cli.main import kaflow
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.specs import PipelineSpec


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        Path(f"{name}.yaml").write_text(
            f"name: {name}\nquery: SELECT id, n FROM numbers\noutput: {{topic: out, key: id}}\n"
        )


def run(*arguments: str) -> Result:
    return CliRunner().invoke(kaflow, ["explain", *arguments], prog_name="kaflow")


def test_all_pipelines() -> None:
    result = run(".")
    assert result.exit_code == 0, result.output
    assert [line for line in result.stdout.splitlines() if ".yaml:1)" in line] == [
        "one  (one.yaml:1)",
        "two  (two.yaml:1)",
    ]
    assert "not known yet" in result.stdout


def test_named_pipelines_as_json() -> None:
    (found,) = json.loads(run(".", "two", "--json").stdout)
    assert found["name"] == "two"
    assert found["topics"][0]["columns"] is None


def test_a_name_that_does_not_exist() -> None:
    result = run(".", "tow")
    assert result.exit_code == 10
    assert result.stderr == "error: unknown pipeline 'tow'\n  hint: did you mean 'two'?\n"


def test_columns_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve_columns(
        spec: PipelineSpec, config: Config, topics: Sequence[str], wait_ms: int
    ) -> Mapping[str, tuple[Column, ...]]:
        assert (spec.name, topics) == ("one", ("numbers",))
        assert (config.max_records, wait_ms) == (7, explain.PATIENCE)
        return {"numbers": (Column("id", "VARCHAR"), Column("n", "BIGINT"))}

    module = SimpleNamespace(resolve_columns=resolve_columns)
    monkeypatch.setattr(explain, "import_module", lambda name: module)
    result = run("one.yaml", "--connect", "--set", "max_records=7")
    assert result.exit_code == 0, result.output
    assert "id VARCHAR, n BIGINT" in result.stdout
    assert "not known yet" not in result.stdout


GRAPHED = """
name: risky
relations:
  seen: {type: dynamic_table, from: orders, key: customer}
  Scored:
    type: script
    from: orders
    script: function process(row) { return row }
  users: {topic: people, table: true}
query: |
  SELECT s.customer, u.name FROM Scored s LEFT JOIN users u ON s.customer = u._key
  WHERE dynamic_table_check('seen', s.customer)
output: {topic: risky}
"""


def test_what_reads_what() -> None:
    Path("graphed.yaml").write_text(GRAPHED)
    result = run("graphed.yaml", "--graph")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [
        "flowchart LR",
        '  n0["Scored"]',
        '  n1["users"]',
        '  n2["seen"]',
        '  n3(["risky"])',
        '  n4[("orders")]',
        '  n5[("people")]',
        "  n0 --> n3",
        "  n1 --> n3",
        "  n2 --> n3",
        "  n4 --> n0",
        "  n5 --> n1",
        "  n4 --> n2",
    ]
    both = run(".", "one", "two", "--graph")
    assert both.stdout.count("flowchart LR") == 2
