"""Runs of rows in one task: rows wait until a run is full or due, then SQL makes rows of it."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.flow.chains.chain import chain_of
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import entries_of, target_of
from kaflow_engine.flow.tables import APPEND_TIME
from kaflow_engine.flow.timed import Runs
from kaflow_engine.formats.pick import keep
from kaflow_engine.model.columns import Column
from kaflow_engine.operators.handover import HandOn, Leaving, placed
from kaflow_engine.operators.keyed_state import StepState
from kaflow_engine.operators.row_errors.bad_record import BadRecord
from kaflow_engine.operators.rows.layout import batch_time_column
from kaflow_engine.operators.rows.partitioning import first_parts
from kaflow_engine.operators.rows.reports import BATCH_TIME, due_report, report_rows
from kaflow_engine.operators.rows.row_order import in_order
from kaflow_engine.operators.rows.row_text import columns_of, pack, unpack
from kaflow_engine.operators.rows.schemas import MEMBERS, OF_RECORDS, ORIGIN, TRIGGER
from kaflow_engine.operators.rows.task import BatchContext, Task
from kaflow_engine.operators.runs.calculate import Made, made_of
from kaflow_engine.operators.runs.kept_rows import NEVER, Arrived, RunRows, Writer, Writers
from kaflow_engine.operators.runs.letters import result_letters, row_failures
from kaflow_engine.operators.watermark import END
from kaflow_engine.state.keys import split_entry

Owners = np.ndarray[tuple[int], np.dtype[np.int64]]
"""Of each row that the SQL selects, the number of its run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Rows that belong together."""

    key: bytes
    """Of their writer."""
    rows: RunRows
    trigger: tuple[int, ...]
    """TRIGGER: of its last row, or of the time at which it fell due."""
    origin: tuple[int, ...]
    """ORIGIN of its last row."""
    members: tuple[int, ...] = ()
    """Of the row that filled it."""


def run_runs(
    flow: Flow, runs: Runs, batch: BatchContext, rows: pa.Table, task: Task, hand_on: HandOn
) -> pa.Table:
    """Run an operator over the rows of one task.

    What other operators send because of the time comes first, then runs that are due, then what
    records have made.

    Args:
        flow: What runs.
        runs: Which operator of it.
        batch: Which batch.
        rows: Schema EXCHANGE; rows for others pass through untouched.
        task: The state before the batch; takes the changes.
        hand_on: Takes what the SQL selects.

    Returns:
        Schema EXCHANGE.
    """
    mine = pc.equal(rows["target"], target_of(flow, runs))
    branches = [target_of(flow, entry) for entry in entries_of(flow, runs)]
    here = in_order(keep(rows, mine), branches)
    ends = batch.horizon(chain_of(flow, runs).number) >= END
    work = _Cutting(
        target=target_of(flow, runs),
        branches={side: place for place, side in enumerate(branches)},
        runs=runs,
        now=END if ends else batch.batch_time,
        writers=Writers(StepState(task, runs.state, flow.partitions)),
    )
    timed = pc.less(here["t_phase"], OF_RECORDS)
    work.take(keep(here, timed))
    if ends or batch.may_be_due(BATCH_TIME):
        work.take_due()
    work.take(keep(here, pc.invert(timed)))
    if ends:
        work.end()
    found = _made(flow, runs, batch, work.found, hand_on)
    due = work.writers.write()
    report = {"due": due_report(BATCH_TIME, None if due is None else due - 1)}
    return pa.concat_tables([rows.filter(pc.invert(mine)), *found, report_rows([report])])


@dataclass(slots=True, kw_only=True)
class _Cutting:
    """Cuts the rows of one task into runs."""

    target: int
    branches: Mapping[int, int]
    """The place of each branch of a union by its `side`."""
    runs: Runs
    now: int
    writers: Writers
    found: list[Run] = field(default_factory=list[Run])

    def take(self, rows: pa.Table) -> None:
        """Take rows in their order."""
        if not rows.num_rows:
            return
        keys = rows["key"].combine_chunks().dictionary_encode()
        order = np.argsort(keys.indices, kind="stable")
        by_writer = rows if len(keys.dictionary) == 1 else rows.take(pa.array(order))
        arrived = Arrived(by_writer.combine_chunks(), self.branches)
        stops = np.cumsum(np.bincount(keys.indices)).tolist()
        full: list[tuple[Writer, RunRows]] = []
        for writer, start, stop in zip(
            self.writers.of(keys.dictionary.to_pylist()), [0, *stops], stops, strict=False
        ):
            full += ((writer, each) for each in self._cut(writer, arrived, start, stop))
        last = pa.array([rows.stop - 1 for _, rows in full], pa.int64())
        about = arrived.rows.select([*TRIGGER, *ORIGIN, "members"]).take(last)
        triggers, origins = (
            list(zip(*(about[name].to_pylist() for name in names), strict=True))
            for names in (TRIGGER, ORIGIN)
        )
        found = [
            Run(
                key=writer.key,
                rows=rows,
                trigger=triggers[n],
                members=tuple(members or ()),
                origin=origins[n],
            )
            for n, ((writer, rows), members) in enumerate(
                zip(full, about["members"].to_pylist(), strict=True)
            )
        ]
        places = order[last.to_numpy()].tolist()
        self.found += (found[n] for n in sorted(range(len(found)), key=lambda n: places[n]))

    def _cut(self, writer: Writer, arrived: Arrived, start: int, stop: int) -> Generator[RunRows]:
        """Yield the runs of a writer that rows fill; what is left waits."""
        begins = not writer.count
        while (end := start + max(self.runs.size - writer.count, 1)) <= stop:
            waited = writer.take(self.writers.state)
            yield RunRows(waited=waited, arrived=arrived, start=start, stop=end)
            start, begins = end, True
        if start < stop:
            if begins:
                every = self.runs.every
                writer.due = NEVER if every is None else self.now + every
            writer.added += arrived.kept(start, stop)

    def take_due(self) -> None:
        """Make runs whose time has come, of what there is."""
        for due in self.writers.state.due(self.now + 1):
            keys = [split_entry(entry)[0] for _, entry in due]
            pairs = zip(due, self.writers.of(keys), strict=True)
            for (at, _), writer in pairs:
                if writer.due == at and writer.count:
                    self._run(writer, self._at(at, writer.key))

    def end(self) -> None:
        """Make runs of what has come since those that are due were made."""
        for writer in self.writers.touched:
            if writer.count:
                self._run(writer, self._at(END, writer.key))

    def _run(self, writer: Writer, trigger: tuple[int, ...]) -> None:
        rows = writer.take(self.writers.state)
        run = Run(
            key=writer.key, rows=RunRows(waited=rows), trigger=trigger, origin=rows[-1].origin
        )
        self.found.append(run)

    def _at(self, time: int, key: bytes) -> tuple[int, ...]:
        """Return what triggers a run because of the time; of several the partition decides."""
        return 0, time, 0, self.target, int(key[1:] or 0), 0


def _made(
    flow: Flow, runs: Runs, batch: BatchContext, found: Sequence[Run], hand_on: HandOn
) -> list[pa.Table]:
    """Let what the SQL selects of runs leave; returns rows and dead letters, schema EXCHANGE."""
    if not found:
        return []
    made = made_of(runs, [run.rows.payloads for run in found])
    chain = chain_of(flow, runs)
    tables = [row_failures(flow, runs, list(zip(found, made, strict=True)))]
    owners = np.repeat(np.arange(len(made)), [len(each.rows) for each in made])
    bad = [(n, each.failed) for n, each in enumerate(made) if each.failed is not None]
    failures = [
        (found[n], BadRecord(row=0, phase="result", error=error, message=message))
        for n, (error, message) in bad
    ]
    if len(owners):
        taken = hand_on(_leaving(flow, runs, batch, found, made, owners))
        tables.append(taken.rows)
        failures += [(found[int(owners[one.row])], one) for one in taken.bad]
    tables.append(result_letters(flow, chain, failures))
    return tables


def _leaving(
    flow: Flow,
    runs: Runs,
    batch: BatchContext,
    found: Sequence[Run],
    made: Sequence[Made],
    owners: Owners,
) -> Leaving:
    results = (*runs.results, Column(APPEND_TIME, "TIMESTAMP"))
    columns = [Column(f"{runs.alias}.{each.name}", each.type) for each in results]
    places = {column.name: f"l[{i}]" for i, column in enumerate(columns, 1)}
    numbers = pa.array(np.arange(len(owners)))
    rows = pa.table({"rn": numbers, "row": pa.concat_arrays([each.rows for each in made])})
    known = _places(flow, found, made, numbers, owners)
    time = "CAST(make_timestamp(ts * 1000) AS VARCHAR)"
    source = f"SELECT rn, list_append({unpack('row')}, {time}) AS l FROM rows"

    def packed(wanted: Sequence[Column]) -> str:
        texts = pack(places[column.name] for column in wanted)
        return f"SELECT rn, {texts} AS payload FROM ({source})"

    typed = ", ".join(["rn", batch_time_column(batch.batch_time), *columns_of("l", columns)])
    return Leaving(
        rows=rows.append_column("ts", known["ts"]),
        typed=f"SELECT {typed} FROM ({source})",
        packed=packed,
        placed=lambda rows: placed(rows, known),
    )


def _places(
    flow: Flow, found: Sequence[Run], made: Sequence[Made], numbers: pa.Array, owners: Owners
) -> pa.Table:
    """Return where results stand: where their run does, and among them in the order of the SQL."""
    triggers = list(zip(*(run.trigger for run in found), strict=True))
    origins = list(zip(*(run.origin for run in found), strict=True))
    by = pa.array(owners)

    def column(values: Sequence[int]) -> pa.Array:
        return pa.array(values, pa.int64()).take(by)

    keys = pa.array([run.key for run in found], pa.binary())
    columns: dict[str, Any] = {
        "rn": numbers,
        **{name: column(values) for name, values in zip(TRIGGER, triggers, strict=True)},
        **{name: column(values) for name, values in zip(ORIGIN, origins, strict=True)},
        "ts": column([run.rows.newest for run in found]),
        "members": _members(found, made),
        "part": column(first_parts(keys, flow.partitions).tolist()),
        "counted": pa.repeat(False, len(owners)),
        "forced": pa.repeat(False, len(owners)),
    }
    return pa.table(columns)


def _members(found: Sequence[Run], made: Sequence[Made]) -> pa.Array:
    """Return the members of the row that filled each run, with the place among its results."""
    sizes = [len(each.rows) for each in made]
    if any(run.members for run in found):
        pairs = zip(found, sizes, strict=True)
        lists = ([*run.members, place] for run, size in pairs for place in range(size))
        return pa.array(list(lists), MEMBERS)
    places = np.concatenate([np.arange(size) for size in sizes])
    offsets = pa.array(np.arange(len(places) + 1, dtype=np.int32))
    return pa.ListArray.from_arrays(offsets, pa.array(places))
