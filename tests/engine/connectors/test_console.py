"""The console prints a line for each change; the blackhole counts rows."""

import json
import pickle
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from kaflow_engine.connectors.contract import FinishedBatch, Output, Owner, TaskPart
from kaflow_engine.connectors.sinks import sink_kind
from kaflow_engine.flow.records import OUTPUT, TABLE_ROW
from kaflow_engine.flow.sinks import ConnectorSink
from kaflow_engine.model.columns import Column
from kaflow_engine.operators.rows.change_rows import change_rows
from kaflow_engine.runtime.tasks.outputs import ColumnOutput, kind_of

OWNER = Owner(state="s", generation=1, epoch=1)
COLUMNS = (Column("id", "BIGINT"), Column("at", "TIMESTAMP"), Column("tags", "VARCHAR[]"))


def sink(kind: str, *, changes: bool = False, lines: str | None = None) -> ConnectorSink:
    return ConnectorSink(
        id=f"sink:{kind}:rows",
        inputs=("p",),
        exchange=False,
        key="id",
        kind=kind,
        target=f"{kind}:rows",
        settings=() if lines is None else (("lines", lines),),
        columns=COLUMNS,
        changes=changes,
    )


def rows(*pairs: tuple[str, list[str | None] | None]) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                "slot": 0,
                "topic": "console:rows",
                "key": key.encode(),
                "value": None if texts is None else json.dumps(texts).encode(),
                "timestamp": n,
                "kind": TABLE_ROW,
                "source_partition": 0,
                "source_offset": n,
            }
            for n, (key, texts) in enumerate(pairs)
        ],
        schema=OUTPUT,
    )


def output(of: ConnectorSink) -> ColumnOutput:
    outlet = kind_of(of).outlet
    assert outlet is not None
    return ColumnOutput(
        outlet=outlet,
        output=Output(
            name=of.target,
            place=of.target,
            columns=of.columns,
            key=of.key,
            changes=of.changes,
            settings=dict(of.settings),
        ),
        parted=None,
        typed=lambda some: change_rows(of, some),
    )


def written(into: ColumnOutput, batch: int, *tasks: pa.Table) -> FinishedBatch:
    task = pickle.loads(pickle.dumps(into.outlet.task(into.output, OWNER)))
    found = [task.write(TaskPart(rows=into.typed(some), batch=batch, epoch=1)) for some in tasks]
    assert [dict(each.rows) for each in found] == [{into.output.name: t.num_rows} for t in tasks]
    return FinishedBatch(
        number=batch, mark="m", notes=[note for each in found for note in each.notes]
    )


GIVEN = rows(
    ("1", ["1", "2026-01-02 03:04:05.5", '["a","é"]']),
    ("2", ["2", None, None]),
    ("1", None),
)


@pytest.mark.parametrize(("changes", "operation"), [(False, "insert"), (True, "upsert")])
def test_a_line_is_a_change(capsys: Any, changes: bool, operation: str) -> None:
    into = output(sink("console", changes=changes))
    batch = written(into, 1, GIVEN, rows(("3", ["3", None, "[]"])))
    assert capsys.readouterr().out == ""  # the driver prints, when all tasks are done
    opened = into.outlet.open(into.output, into.columns, OWNER, None)
    opened.commit(batch)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    first = {"id": 1, "at": "2026-01-02T03:04:05.500000Z", "tags": ["a", "é"]}
    assert {**lines[0]["row"], "at": None} == {**first, "at": None}
    assert lines[0]["row"]["at"].startswith("2026-01-02")
    assert [(line["op"], line["key"]) for line in lines] == [
        (operation, "1"),
        (operation, "2"),
        ("delete", "1"),
        (operation, "3"),
    ]
    assert lines[1]["row"] == {"id": 2, "at": None, "tags": None}
    assert "row" not in lines[2]
    assert {line["output"] for line in lines} == {"console:rows"}
    assert not opened.delivered(1)


def test_a_line_is_a_row_alone_and_rows_that_go_have_none(capsys: Any) -> None:
    into = output(sink("console", changes=True, lines="rows"))
    opened = into.outlet.open(into.output, into.columns, OWNER, None)
    opened.commit(written(into, 1, GIVEN))
    assert capsys.readouterr().out.splitlines()[1:] == ['{"id": 2, "at": null, "tags": null}']


def test_of_so_many_lines_one_is_printed(capsys: Any) -> None:
    into = output(replace(sink("console"), settings=(("sample_every", 2),)))
    opened = into.outlet.open(into.output, into.columns, OWNER, None)
    for number in range(3):
        opened.commit(written(into, number, rows((f"{number}", [f"{number}", None, None]))))
    assert [json.loads(line)["key"] for line in capsys.readouterr().out.splitlines()] == ["1"]
    opened.commit(written(into, 4, rows(("3", ["3", None, None]), ("4", ["4", None, None]))))
    assert [json.loads(line)["key"] for line in capsys.readouterr().out.splitlines()] == ["3"]


def test_a_blackhole_counts(capsys: Any) -> None:
    into = output(sink("blackhole"))
    opened = into.outlet.open(into.output, into.columns, OWNER, None)
    opened.commit(written(into, 1, GIVEN))
    opened.finish()
    assert capsys.readouterr().out == ""
    assert list(into.outlet.look(into.output, into.columns, OWNER)) == []


@pytest.mark.parametrize("kind", ["console", "blackhole"])
def test_what_is_not_kept_is_not_promised(kind: str) -> None:
    found = sink_kind(kind).capabilities("exactly_once", {})
    assert (found.guarantee, found.accepts) == ("at_least_once", {"append", "upsert"})
    assert found.backfills
