"""Scripts: what values are to them, what they may use, and that no row leaves anything behind."""

import resource
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from kaflow_engine.duck.queries import query
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.transforms import ScriptParams, Transform
from kaflow_engine.model.columns import Column
from kaflow_engine.operators.transform.contract import TransformBatch, Transformed
from kaflow_engine.state.answers import NO_ANSWERS
from kaflow_engine.testing.cases.cases import run_case
from kaflow_engine.testing.cases.cuts import Cuts
from kaflow_engine.testing.cases.executor import LocalExecutor
from kaflow_engine.testing.cases.files import load_cases
from kaflow_engine.testing.cases.pipeline import Surroundings
from kaflow_engine.testing.cases.report import report_lines
from kaflow_engine.transforms.script.kind import ScriptKind
from kaflow_engine.transforms.script.run import CHUNK
from tests.page import blocks

ROWS = Path(__file__).parents[2] / "fixtures" / "scripts"
NUMBERS = (Column("id", "BIGINT"),)
BATCH = TransformBatch(
    batch=1, batch_time=0, mark="", identities=lambda: pa.table({}), answers=NO_ANSWERS
)


def script(
    text: str,
    columns: Sequence[Column],
    results: Sequence[Column] | None = None,
    *,
    timeout: int = 1_000,
    memory: int = 64_000_000,
) -> Transform:
    return Transform(
        id="transform:s",
        inputs=("group:s",),
        alias="s",
        name="s",
        columns=tuple(columns),
        passed=(),
        results=tuple(columns if results is None else results),
        params=ScriptParams(language="javascript", text=text, timeout=timeout, memory=memory),
    )


def run(transform: Transform, rows: pa.Table) -> Transformed:
    return ScriptKind().open(transform)(rows, BATCH)


def numbers(count: int) -> pa.Table:
    return pa.table({"id": pa.array(range(count), pa.int64())})


def table(name: str) -> list[Any]:
    found = yaml.load((ROWS / f"{name}.yaml").read_text(), yaml.CSafeLoader)
    return [
        pytest.param(row, id=row.get("title") or f"{row['type']}: {row['sql']}") for row in found
    ]


@pytest.mark.parametrize("row", table("values"))
def test_a_value_goes_in_and_comes_out_as_it_was(row: dict[str, Any]) -> None:
    column = Column("v", row["type"])
    seen = Column("seen", "VARCHAR")
    text = f"function process(row) {{ row.seen = {row['shown']}; return row }}"
    rows = query(f"SELECT CAST({row['sql']} AS {row['type']}) AS v")
    made = run(script(text, [column], [column, seen]), rows)
    assert made.failures == ()
    kept = f"SELECT CAST(v AS {row['type']}) AS v FROM rows"
    assert query(kept, rows=made.rows).to_pylist() == query(kept, rows=rows).to_pylist()
    assert made.rows["seen"].to_pylist() == [row["seen"]]


@pytest.mark.parametrize("row", table("results"))
def test_a_value_fits_its_column_or_its_row_is_a_dead_letter(row: dict[str, Any]) -> None:
    results = [Column("v", row["type"])]
    text = f"function process(row) {{ return {{v: {row['js']}}} }}"
    made = run(script(text, NUMBERS, results), numbers(1))
    if "message" in row:
        assert [failure.message for failure in made.failures] == [row["message"]]
        assert made.rows.num_rows == 0
        return
    assert made.failures == ()
    shown = f"SELECT CAST(CAST({identifier('v')} AS {row['type']}) AS VARCHAR) AS v FROM rows"
    assert query(shown, rows=made.rows)["v"].to_pylist() == [row["value"]]


@pytest.mark.parametrize("row", table("failures"))
def test_what_fails_is_told_and_the_next_row_goes_on(row: dict[str, Any]) -> None:
    text = row["script"]
    made = run(script(text, NUMBERS, timeout=row.get("timeout", 1_000)), numbers(4))
    assert [(each.row, each.error) for each in made.failures] == [(2, row["error"])]
    assert made.failures[0].message == row["message"]
    assert made.rows["id"].to_pylist() == [0, 1, 3]
    assert made.origin.to_pylist() == [0, 1, 3]


def test_memory_that_a_script_asks_for_is_not_taken() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    text = """
    function process(row) {
      const parts = []
      while (row.id === 2) parts.push(new Array(1000000).fill(row.id))
      return row
    }"""
    made = run(script(text, NUMBERS), numbers(4))
    assert [each.row for each in made.failures] == [2]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # kilobytes


@pytest.mark.parametrize("row", table("leaks"))
def test_no_row_leaves_anything_behind(row: dict[str, Any]) -> None:
    transform = script(row["script"], NUMBERS, [Column("v", "VARCHAR")])
    made = run(transform, numbers(3))
    assert made.rows["v"].to_pylist() == row["values"]
    messages = [failure.message for failure in made.failures]
    assert messages == [row.get("message")] * len(messages)
    assert len(messages) + made.rows.num_rows == 3


@pytest.mark.parametrize(
    "name",
    ["fetch", "XMLHttpRequest", "WebSocket", "require", "process", "std", "os", "Deno", "load"],
)
def test_there_is_no_way_out(name: str) -> None:
    text = f"function invoke(row) {{ return {{v: typeof {name}}} }}"
    made = run(script(text, NUMBERS, [Column("v", "VARCHAR")]), numbers(1))
    assert made.rows["v"].to_pylist() == ["undefined"]


def test_a_module_is_not_loaded() -> None:
    text = """
    function process(row) {
      let found = 'nothing'
      import('os').then(() => { found = 'a module' })
      return {v: found}
    }"""
    made = run(script(text, NUMBERS, [Column("v", "VARCHAR")]), numbers(2))
    assert made.rows["v"].to_pylist() == ["nothing", "nothing"]


def test_rows_of_many_chunks_keep_their_order() -> None:
    text = "function process(row) { return row.id % 3 ? Array(row.id % 3).fill(row) : null }"
    made = run(script(text, NUMBERS), numbers(2 * CHUNK + 7))
    expected = [n for n in range(2 * CHUNK + 7) for _ in range(n % 3)]
    assert made.rows["id"].to_pylist() == expected
    assert made.origin.to_pylist() == expected


def test_nothing_becomes_nothing() -> None:
    made = run(script("function process(row) { return row }", NUMBERS), numbers(0))
    assert made.rows.num_rows == 0
    assert made.rows.column_names == ["id"]


def test_the_example_of_the_page(tmp_path: Path) -> None:
    file = tmp_path / "cases.yaml"
    file.write_text(next(block for block in blocks("yaml", "transforms.md")))
    (case,) = load_cases(file, {})
    for cuts in ("given", "each", "all"):
        result = run_case(
            case, LocalExecutor(), cuts=Cuts.of(cuts), around=Surroundings(variables={})
        )
        assert result.passed, "\n".join(report_lines(result))
