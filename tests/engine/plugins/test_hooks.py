"""Plugins as classes with hooks: when each is called, with what, and what they may rely on."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kaflow_engine.api.hooks import (
    GivenTransform,
    NewRows,
    SinkAway,
    SinkHooks,
    SinkUnfit,
    TransformAway,
    TransformHooks,
    TransformUnfit,
)
from kaflow_engine.connectors.contract import FinishedBatch, Output, Owner, TaskPart
from kaflow_engine.connectors.hooked.sink import HookedSink, hook_rows
from kaflow_engine.measures import Measure, Series
from kaflow_engine.model.columns import Column
from kaflow_engine.operators.rows.reports import BatchReport
from kaflow_engine.plugins.installed import SINKS, TRANSFORMS, loaded
from kaflow_engine.runtime.batch.task_metrics import measured, with_measures_of
from kaflow_engine.testing.sink_laws import OURS, rows_of
from tests.plugins.basic_plugin import FilterTransform

OUTPUT = Output(name="acme.said:rows", place="p", columns=(Column("n", "BIGINT"),))
CALLED: list[tuple[object, ...]] = []
"""What hooks of the test were called with."""


@pytest.fixture(autouse=True)
def nothing_called() -> None:
    CALLED.clear()


class Said(SinkHooks):
    """Says what it is called with; what it opens belongs to a loop."""

    async def initialize(self) -> None:
        self.loop = asyncio.get_running_loop()
        CALLED.append(("initialize", self.given.owner))

    async def process_batch(self, data: pa.RecordBatch) -> None:
        assert asyncio.get_running_loop() is self.loop
        CALLED.append(("rows", *data["n"].to_pylist(), *data["_gs_op"].to_pylist()))

    def process_checkpoint_marker(self, epoch: int) -> None:
        CALLED.append(("marker", epoch))

    def process_checkpoint_finalizer(self, epoch: int) -> None:
        CALLED.append(("finalizer", epoch))

    async def terminate(self) -> None:
        CALLED.append(("terminate",))


class Exact(Said):
    """Has the rows of two batches."""

    guarantee = "exactly_once"

    def last_epoch(self) -> int | None:
        return 2 if self.given.owner == "s-1" else None


def batch(number: int, *tasks: list[int]) -> FinishedBatch:
    kind = Said().outlet
    assert kind is not None
    task = kind.task(OUTPUT, OURS)
    notes = [
        note
        for values in tasks
        for note in task.write(TaskPart(rows=rows_of(values), batch=number, epoch=1)).notes
    ]
    return FinishedBatch(number=number, mark="m", notes=notes)


def test_a_sink_hears_of_a_batch_before_and_after_it_is_committed() -> None:
    sink = HookedSink(Said, OUTPUT, OURS)
    assert CALLED == []  # outputs are opened more often than written
    sink.commit(batch(1, [1, 2], [3]))
    sink.finalized(1)
    sink.commit(batch(2))
    sink.finalized(2)
    sink.ended()
    assert CALLED == [
        ("initialize", "s-1"),
        ("rows", 1, 2, 3, "i", "i", "i"),
        ("marker", 1),
        ("finalizer", 1),
        ("marker", 2),
        ("finalizer", 2),
        ("terminate",),
    ]
    assert not sink.delivered(2)


@pytest.mark.parametrize(
    ("owner", "given"), [(OURS, [3]), (Owner(state="s", generation=2), [2, 3])]
)
def test_a_sink_that_is_exact_is_given_what_it_does_not_have(
    owner: Owner, given: list[int]
) -> None:
    sink = HookedSink(Exact, OUTPUT, owner)
    assert sink.delivered(2) is (owner is OURS)
    for number in (2, 3):
        sink.commit(batch(number, [number]))
    assert [each[1] for each in CALLED if each[0] == "marker"] == given
    assert sink.delivered(3)


@pytest.mark.parametrize(("kind", "held"), [(Exact, [("s", 1, 2)]), (Said, [])])
def test_a_start_asks_what_a_sink_has(kind: type[SinkHooks], held: list[Any]) -> None:
    outlet = kind().outlet
    assert outlet is not None
    schema = rows_of([]).schema
    found = outlet.look(OUTPUT, schema, OURS)
    assert [(each.state, each.generation, each.batch) for each in found] == held
    assert outlet.look(OUTPUT, schema, Owner(state="", generation=0)) == ()
    assert CALLED == ([("initialize", "s-1"), ("terminate",)] if held else [])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (False, [{"n": 1, "g": "a", "_gs_op": "i"}, {"n": 2, "g": "b", "_gs_op": "i"}]),
        (True, [{"n": 1, "g": "a", "_gs_op": "u"}, {"n": 2, "g": None, "_gs_op": "d"}]),
    ],
)
def test_a_row_that_goes_has_its_key(changes: bool, said: list[Mapping[str, Any]]) -> None:
    columns = (Column("n", "BIGINT"), Column("g", "VARCHAR"))
    output = replace(OUTPUT, columns=columns, key="n", changes=changes)
    rows = rows_of([1, 2]).append_column("g", pa.array(["a", "b"]))
    if changes:
        gone = {"n": [1, None], "g": ["a", None], "$key": ["1", "2"], "$deleted": [False, True]}
        for name, values in gone.items():
            place = rows.schema.get_field_index(name)
            array = pa.array(values, rows.schema.field(name).type)
            rows = rows.set_column(place, name, array)
    (found,) = hook_rows(output, rows)
    assert found.to_pylist() == said


@pytest.mark.parametrize(
    ("raised", "error", "said"),
    [
        (
            ConnectionResetError("gone"),
            SinkAway,
            "sink 'acme.said:rows' fails at 'process_batch': Conn",
        ),
        (SinkAway("later"), SinkAway, "later"),
        (KeyError("n"), SinkUnfit, "sink 'acme.said:rows' fails at 'process_batch': KeyError: 'n'"),
    ],
)
def test_what_a_hook_raises(raised: Exception, error: type[Exception], said: str) -> None:
    class Raising(Said):
        async def process_batch(self, data: pa.RecordBatch) -> None:
            raise raised

    with pytest.raises(error) as caught:
        HookedSink(Raising, OUTPUT, OURS).commit(batch(1, [1]))
    assert str(caught.value).startswith(said)


def test_what_a_sink_measures_counts_with_its_batch() -> None:
    class Counting(Said):
        async def process_batch(self, data: pa.RecordBatch) -> None:
            self.given.metrics.count("taken", data.num_rows, kind="x")

    sink = HookedSink(Counting, OUTPUT, OURS)
    sink.commit(batch(1, [1, 2]))
    report = with_measures_of((sink,), BatchReport())
    taken = Series("count", "plugin_acme_said_taken", (("kind", "x"),))
    assert measured((), report) == ((taken, Measure(2.0)),)
    assert with_measures_of((sink,), report) is report


@pytest.mark.parametrize("hook", ["initialize", "process_checkpoint_marker"])
@pytest.mark.parametrize(
    ("raised", "error"), [(TimeoutError(), TransformAway), (KeyError("n"), TransformUnfit)]
)
def test_what_a_hook_of_a_transform_raises(
    hook: str, raised: Exception, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(self: Heard, *given: object) -> None:
        raise raised

    fails.__name__ = hook
    monkeypatch.setattr(Heard, hook, fails)
    made = Heard().open(given_transform(Heard(), {"makes": "all"}, 1))
    with pytest.raises(error, match=f"transform '.*' fails at '{hook}': {type(raised).__name__}"):
        made(pa.table({"n": [1], "g": ["a"]}))


def test_a_filter_says_of_which_row_each_is() -> None:
    made = FilterTransform().open(given_transform(FilterTransform(), {"g": "a"}, batch=1))
    found = made(pa.table({"n": [1, 2, 3], "g": ["a", "b", "a"]}))
    assert found.rows.to_pylist() == [{"n": 1, "g": "a"}, {"n": 3, "g": "a"}]
    assert pa.array(found.of).to_pylist() == [0, 2]


def given_transform(kind: TransformHooks, options: Mapping[str, Any], batch: int) -> GivenTransform:
    columns = {"n": "BIGINT", "g": "VARCHAR"}
    said = kind.options.model_validate(options)
    return GivenTransform(name="t", options=said, columns=columns, results=columns, batch=batch)


class Heard(TransformHooks):
    """Says what it is called with; its options say what it returns."""

    def initialize(self) -> None:
        CALLED.append(("initialize",))

    async def process_batch(self, data: pa.RecordBatch) -> Any:
        CALLED.append(("rows", data.num_rows))
        match self.given.options.model_dump().get("makes"):
            case "all":
                return data.select(["n", "g"])
            case "fewer":
                return data.slice(1).select(["n", "g"])
            case "new rows":
                rows = pa.Table.from_batches([data.slice(1)])
                return NewRows(rows=rows, of=[1], failures={0: "not this one"})
            case _:
                return [1, 2]

    def process_checkpoint_marker(self, epoch: int) -> None:
        CALLED.append(("marker", epoch))

    def process_checkpoint_finalizer(self, epoch: int) -> None:
        CALLED.append(("finalizer", epoch))


@pytest.mark.parametrize(("number", "marker"), [(7, [("marker", 7)]), (0, [])])
@pytest.mark.parametrize("makes", ["all", "new rows"])
def test_a_transform_hears_of_the_batch_that_its_rows_are_of(
    makes: str, number: int, marker: list[Any]
) -> None:
    made = Heard().open(given_transform(Heard(), {"makes": makes}, number))
    rows = pa.table({"n": [1, 2], "g": ["a", "b"]})
    found = made(rows)
    assert len(found.failures) + found.rows.num_rows == 2
    assert CALLED == [("initialize",), ("rows", 2), *marker]
    made(rows)
    assert CALLED.count(("initialize",)) == 1


@pytest.mark.parametrize(
    ("makes", "said"),
    [
        ("fewer", "transform 't' makes 1 rows of 2, and has no column '$row' that says of which"),
        ("lists", "transform 't' returns list from 'process_batch'"),
    ],
)
def test_what_a_transform_must_not_return(makes: str, said: str) -> None:
    made = Heard().open(given_transform(Heard(), {"makes": makes}, 1))
    with pytest.raises(TransformUnfit) as caught:
        made(pa.table({"n": [1, 2], "g": ["a", "b"]}))
    assert str(caught.value).startswith(said)


def test_what_hears_of_commits_begins_with_the_first() -> None:
    assert FilterTransform().finalizing(given_transform(FilterTransform(), {}, 0)) is None
    hearing = Heard().finalizing(given_transform(Heard(), {}, 0))
    assert hearing is not None
    hearing.finalized(3)
    hearing.finalized(4)
    hearing.ended()
    assert CALLED == [("initialize",), ("finalizer", 3), ("finalizer", 4)]


def test_a_plugin_of_version_3_runs(tmp_path: Path, frozen_plugins: None) -> None:
    file = tmp_path / "said"
    kind = loaded(TRANSFORMS, "frozen.odd")
    given = replace(given_transform(kind, {"file": str(file)}, 4), results={"twice": "BIGINT"})
    made = kind.open(given)(pa.table({"n": [1, 2, 3], "g": ["a", "b", "c"]}))
    assert made.rows["twice"].to_pylist() == [2, 6]
    assert pa.array(made.of).to_pylist() == [0, 2]
    kind.finalizing(given).finalized(4)
    assert file.read_text() == "transform 4\n"
    rows = tmp_path / "rows.json"
    output = replace(OUTPUT, settings={"file": str(rows)})
    for number in (1, 1, 2):  # each by a run of its own
        sink = HookedSink(type(loaded(SINKS, "frozen.noted")), output, OURS)
        sink.commit(batch(number, [number]))
        sink.finalized(number)
        sink.ended()
    assert json.loads(rows.read_text()) == {
        "epochs": {"s-1": 2},
        "rows": [[1, "i"], [2, "i"]],
        "done": 2,
    }
