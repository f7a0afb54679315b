"""Rows on their way through a transform: computed, transformed, and handed on in the same task."""

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.duck.quoting import identifier
from kaflow_engine.errors import noted
from kaflow_engine.flow.operators import Project
from kaflow_engine.flow.transforms import IN, Transform
from kaflow_engine.model.columns import Column
from kaflow_engine.operators.handover import HandOn, Leaving, Taken
from kaflow_engine.operators.outcomes.outcomes import EMITTED
from kaflow_engine.operators.output.project import projected
from kaflow_engine.operators.output.unnest import PLACES, first_of_each, ordered_by_place
from kaflow_engine.operators.row_errors.bad_record import BadRecord
from kaflow_engine.operators.row_errors.quarantine import bad_records, guarded
from kaflow_engine.operators.rows.layout import batch_time_column
from kaflow_engine.operators.rows.row_order import with_members
from kaflow_engine.operators.rows.row_text import pack, to_text
from kaflow_engine.operators.rows.schemas import EXCHANGE, MEMBERS, ORIGIN, TRIGGER
from kaflow_engine.operators.rows.task import BatchContext, Task
from kaflow_engine.operators.transform.contract import TransformBatch, Transformed
from kaflow_engine.operators.transform.kinds import transform_kind

_ROW, _PLACE, _ORIGIN = "$row", "$place", "$origin"
"""Of a row that is made: the place, among those that were given, of the one that it is made of; its
own among those of that one; and the `rn` of that one."""


def enter_transform(
    project: Project,
    transform: Transform,
    batch: BatchContext,
    task: Task,
    leaving: Leaving,
    hand_on: HandOn,
) -> Taken:
    """Take rows: compute what the transform is given, and hand on what it makes of them.

    A record fails as a whole: none of its rows leaves where one of them fails, here or behind.

    Args:
        project: What is selected of the rows.
        transform: What makes others of them.
        batch: Which batch.
        task: Keeps what outside systems answer.
        leaving: The rows.
        hand_on: Takes what the transform makes, under numbers of its own.
    """
    given, failed = guarded(projected(project, leaving.typed), leaving.rows)
    made = _transformed(transform, given, batch, task, leaving)
    bad = bad_records(failed) + [
        BadRecord(
            row=given["rn"][each.row].as_py(),
            phase=each.phase,
            error=each.error,
            message=each.message,
        )
        for each in made.failures
    ]
    rows = _rows(transform, given, made, bad)
    if not rows.num_rows:
        return Taken(
            rows=EXCHANGE.empty_table(),
            numbers=pa.chunked_array([], pa.int64()),
            passed=leaving.placed(rows.select(["rn"])),
            bit=EMITTED,
            bad=_once(bad),
        )
    return _of_records(hand_on(_leaving(transform, batch, leaving, given, rows)), rows, bad)


def _transformed(
    transform: Transform, given: pa.Table, batch: BatchContext, task: Task, leaving: Leaving
) -> Transformed:
    inputs = pa.table({c.name: given[f"o.{IN}{c.name}"] for c in transform.columns})
    labels = {"transform": transform.name, "kind": transform.params.type}
    start = perf_counter()
    about = TransformBatch(
        batch=batch.batch,
        batch_time=batch.batch_time,
        mark=batch.mark,
        identities=lambda: _identities(leaving, given),
        answers=task.answers,
        secrets=task.secrets,
        connection=task.connection,
        states=batch.states,
        learned=task.learned,
        measures=task.measures,
    )
    kind, rows = transform.params.type, inputs.num_rows
    with noted(f"{kind} '{transform.name}': {rows} rows of batch {batch.batch}"):
        found = transform_kind(kind).open(transform)(inputs, about)
    task.measures.time("transform", perf_counter() - start, **labels)
    task.measures.count("transform_rows", inputs.num_rows, **labels)
    task.measures.count("transform_results", len(found.origin), **labels)
    task.measures.count("transform_failures", len(found.failures), **labels)
    return found


def _identities(leaving: Leaving, given: pa.Table) -> pa.Table:
    rows = _placed(leaving, given)
    names = [name for name in (*TRIGGER, *ORIGIN, "ts", "members") if name in rows.column_names]
    return rows.select(names)


def _rows(
    transform: Transform, given: pa.Table, made: Transformed, bad: Sequence[BadRecord]
) -> pa.Table:
    """Return the rows that are made, numbered, with the number of the row that each is made of."""
    origins = given["rn"].take(made.origin)
    columns = {"rn": pa.array(np.arange(len(made.origin)))}
    columns |= {_ROW: made.origin, _PLACE: _places(made.origin), _ORIGIN: origins}
    columns |= {f"{transform.alias}.{c.name}": made.rows[c.name] for c in transform.results}
    for column in transform.passed:
        columns[f"{transform.alias}.{column.name}"] = given[f"o.{column.name}"].take(made.origin)
    rows = pa.table(columns)
    if not bad:
        return rows
    return rows.filter(pc.invert(pc.is_in(rows[_ORIGIN], _numbers(bad))))


def _places(origin: pa.Array) -> pa.Array:
    """Return the place of each row among those that are made of the same one, as a list of it."""
    of = origin.to_numpy()
    starts = np.flatnonzero(np.append(True, of[1:] != of[:-1])) if len(of) else of
    counts = np.diff(np.append(starts, len(of)))
    places = np.arange(len(of)) - np.repeat(starts, counts)
    offsets = pa.array(np.arange(len(of) + 1, dtype=np.int32))
    return pa.ListArray.from_arrays(offsets, pa.array(places)).cast(MEMBERS)


def _leaving(
    transform: Transform, batch: BatchContext, leaving: Leaving, given: pa.Table, rows: pa.Table
) -> Leaving:
    columns = transform.rows
    values = (f"CAST({identifier(c.name)} AS {c.type}) AS {identifier(c.name)}" for c in columns)
    typed = f"SELECT {', '.join(['rn', batch_time_column(batch.batch_time), *values])} FROM rows"

    def packed(wanted: Sequence[Column]) -> str:
        texts = pack(to_text(identifier(column.name), column.type) for column in wanted)
        return f"SELECT rn, {texts} AS payload FROM ({typed})"

    def places(found: pa.Table) -> pa.Table:
        own = rows.take(pc.index_in(found["rn"], value_set=rows["rn"].combine_chunks()))
        below = given.select([n for n in ("rn", PLACES) if n in given.column_names])
        placed = _placed(leaving, below.take(own[_ROW].combine_chunks()))
        if "members" not in placed.column_names:
            placed = placed.append_column(pa.field("members", MEMBERS), own[_PLACE])
        else:
            placed = with_members(placed, own[_PLACE])
        for name in placed.column_names:
            if name != "rn":
                found = found.append_column(placed.schema.field(name), placed[name])
        return found

    return Leaving(rows=rows, typed=typed, packed=packed, placed=places)


def _placed(leaving: Leaving, given: pa.Table) -> pa.Table:
    """Put rows that a projection selects where they come from, with the places of what was
    unnested."""
    rows = leaving.placed(given.select([n for n in ("rn", PLACES) if n in given.column_names]))
    return ordered_by_place(rows) if PLACES in rows.column_names else rows


def _of_records(taken: Taken, rows: pa.Table, bad: Sequence[BadRecord]) -> Taken:
    """Return what became of rows in the numbers of those that they are made of."""
    failing = pa.chunked_array([_numbers(taken.bad)], pa.int64())
    own = _origins(rows, failing).to_pylist()
    behind = [replace(each, row=row) for each, row in zip(taken.bad, own, strict=True)]
    at = taken.passed.column_names.index("rn")
    passed = taken.passed.set_column(at, "rn", _origins(rows, taken.passed["rn"]))
    kept, numbers = taken.rows, _origins(rows, taken.numbers)
    failed = _numbers(behind)
    if behind:
        passed = passed.filter(pc.invert(pc.is_in(passed["rn"], failed)))
        sound = pc.invert(pc.is_in(numbers, failed))
        kept, numbers = kept.filter(sound), numbers.filter(sound)
    return Taken(
        rows=kept,
        numbers=numbers,
        passed=first_of_each(passed),
        bit=taken.bit,
        bad=_once([*bad, *behind]),
    )


def _origins(rows: pa.Table, numbers: pa.ChunkedArray) -> pa.ChunkedArray:
    places = pc.index_in(numbers, value_set=rows["rn"].combine_chunks())
    return rows[_ORIGIN].take(places)


def _numbers(bad: Sequence[BadRecord]) -> pa.Array:
    return pa.array([each.row for each in bad], pa.int64())


def _once(bad: Sequence[BadRecord]) -> tuple[BadRecord, ...]:
    found: dict[int, BadRecord] = {}
    for each in bad:
        found.setdefault(each.row, each)
    return tuple(found.values())
