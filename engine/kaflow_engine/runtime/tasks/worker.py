"""The `Task` of a Spark Python worker: RocksDB copies, change files, delivery."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import astuple
from functools import cache, partial
from time import perf_counter, time
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.connectors.contract import Owner, TaskPart, TaskSink, Written
from kaflow_engine.errors import noted
from kaflow_engine.flow.records import DEAD_LETTER, TABLE_ROW
from kaflow_engine.formats.schema_registry import UnknownSchema
from kaflow_engine.measures import Measures, to_json
from kaflow_engine.operators.output.refused import refused_letters
from kaflow_engine.operators.rows.task import BatchContext
from kaflow_engine.plugins.metrics import PluginMetrics
from kaflow_engine.plugins.state import Learned
from kaflow_engine.plugins.state import Owner as StateOwner
from kaflow_engine.runtime.tasks.crash import crash_point
from kaflow_engine.runtime.tasks.outputs import (
    ColumnOutput,
    column_outputs,
    letter_output,
)
from kaflow_engine.runtime.tasks.settings import TaskSettings
from kaflow_engine.runtime.tasks.timed_state import TimedReader
from kaflow_engine.state.copies.open_copies import OpenCopies, OpenCopy
from kaflow_engine.state.copies.rocks import RocksCopy
from kaflow_engine.state.log.answers import KeptAnswers
from kaflow_engine.state.log.batch_log import BatchLog
from kaflow_engine.state.log.changes import write_changes
from kaflow_engine.state.reader import StateReader
from kaflow_engine.state.storage.copy_location import copy_root
from kaflow_engine.state.storage.store import LocalStore

_PATIENCE_S = 5.0
_OPEN = OpenCopies()


class WorkerTask:
    """A `Task` that reads RocksDB copies, writes change files and delivers."""

    def __init__(
        self, settings: TaskSettings, batch: BatchContext, partitions: Sequence[int]
    ) -> None:
        self.partitions = partitions
        self.output: list[pa.Table] = []
        """Rows that were not delivered because there is no sink."""
        self.changed = 0
        """Entries in the change files that it has written."""
        self._settings = settings
        self._batch = batch
        self._log = BatchLog(LocalStore(settings.directory))
        self._copies = ExitStack()
        self._open: dict[tuple[int, int], StateReader] = {}
        self._sized: dict[str, OpenCopy | RocksCopy] = {}
        self._notes: list[Mapping[str, Any]] = []
        self._phases: dict[str, float] = {}
        self._stages: list[list[int]] = []
        self.learned = Learned()
        self.measures = Measures()

    def __enter__(self) -> "WorkerTask":
        self._copies.__enter__()
        return self

    def __exit__(self, *about: Any) -> None:
        if sizes := {name: astuple(copy.size()) for name, copy in self._sized.items()}:
            self._notes.append({"sizes": sizes})
        with self.timed("close"):
            self._copies.__exit__(*about)
        self._open.clear()
        self._sized.clear()

    def state(self, step: int, partition: int) -> StateReader:
        """Return the state as it was after the batch before."""
        found = self._open.get((step, partition))
        if found is None:
            name = f"{step}-{partition}"
            with self.timed("open"):
                root = self._copies.enter_context(copy_root(self._settings.place, name))
                copy = self._copies.enter_context(
                    _OPEN.reading(
                        root,
                        name,
                        self._settings.state,
                        self._batch.batch - 1,
                        self._log,
                        self._settings.snapshots,
                    )
                )
            found = TimedReader(copy, partial(self.timed, "state"))
            self._open[step, partition] = found
            self._sized[name] = copy
        return found

    def write_changes(self, step: int, partition: int, changes: pa.Table) -> None:
        """Write puts and deletes as a change file."""
        name, batch = f"{step}-{partition}", self._batch
        self.passing("before_changes")
        with self.timed("changes"):
            file = write_changes(
                self._log.store, self._settings.state, batch.batch, name, batch.epoch, changes
            )
        self.passing("changes_written")
        if file is not None:
            self.changed += file.rows
            about = {"file": file.file, "sha256": file.sha256, "rows": file.rows}
            self._notes.append({"changes": {name: about}})

    def deliver(self, rows: pa.Table) -> None:
        """Hand rows of schema OUTPUT to their sinks, or keep them for the driver.

        All records, whichever their topics, are one delivery: a marker counts them together.
        """
        settings = self._settings
        if settings.sink is None:
            self.output.append(rows)
            return
        if settings.plan.side_outputs:
            with self.timed("side_outputs"):
                self._notes += settings.side_outputs.show(
                    settings.plan, rows, self._batch.batch, self.connection, self.measures
                )
        if outputs := column_outputs(settings.plan, settings.connections):
            in_columns = pc.equal(rows["kind"], TABLE_ROW)
            ready, rows = rows.filter(in_columns), rows.filter(pc.invert(in_columns))
            for into in outputs:
                mine = ready.filter(pc.equal(ready["topic"], into.output.name))
                if mine.num_rows:
                    with self.timed("table"):
                        letters = self._write_columns(into, mine)
                    if letters is not None:
                        rows = pa.concat_tables([rows, letters])
        rows = self._deliver_letters(rows)
        if rows.num_rows:
            with self.timed("deliver"):
                self._write(settings.sink, rows, "deliver", "records")

    def _deliver_letters(self, rows: pa.Table) -> pa.Table:
        """Hand dead letters over that do not leave with rows; returns the rows that are left."""
        table = letter_output(self._settings.plan, self._settings.connections)
        files = self._settings.letters if self._settings.plan.letters == "files" else None
        if table is None and files is None:
            return rows
        dead = pc.equal(rows["kind"], DEAD_LETTER)
        if (mine := rows.filter(dead)).num_rows:
            with self.timed("deliver"):
                if files is not None:
                    self._write(files, mine, "deliver", "dead_letters")
                elif table is not None:
                    self._write_columns(table, mine)
                    self._notes.append({"dead_letters": mine.num_rows})
        return rows.filter(pc.invert(dead))

    def _write_columns(self, into: ColumnOutput, rows: pa.Table) -> pa.Table | None:
        """Write rows as columns; returns dead letters about those that the sink refused."""
        state, plan = self._settings.state, self._settings.plan
        owner = Owner(state=state.state_id, generation=state.generation, epoch=self._settings.epoch)
        task, name = into.outlet.task(into.output, owner), into.output.name
        written = self._write(task, into.typed(rows), "table", name, into.owner)
        if not written.refused:
            return None
        self._notes.append({"refused": len(written.refused)})
        return refused_letters(plan, name, rows, written.refused)

    def _write(
        self,
        sink: TaskSink,
        rows: pa.Table,
        phase: str,
        output: str,
        owner: StateOwner | None = None,
    ) -> Written:
        plugin = owner.plugin if owner else ""
        part = TaskPart(
            rows=rows,
            batch=self._batch.batch,
            epoch=self._batch.epoch,
            mark=self._batch.mark,
            alone=len(self.partitions) == self._settings.plan.partitions,
            passing=self.passing,
            answers=self.answers,
            state=self._batch.states.get(owner.text, {}) if owner else {},
            metrics=PluginMetrics(plugin, self.measures),
        )
        start = perf_counter()
        with noted(f"output '{output}': {rows.num_rows} rows of batch {part.batch}"):
            written = sink.write(part)
        self.measures.time("sink", perf_counter() - start, output=output)
        self.measures.count("sink_refused", len(written.refused), output=output)
        for name, spent in written.phases.items():
            self._spend(f"{phase}.{name}", spent)
        if owner is not None and written.learned:
            self.learned.take(owner, {"": written.learned})
        self._notes += [*written.notes, {"rows": dict(written.rows)}]
        return written

    @property
    def answers(self) -> KeptAnswers:
        """Return what outside systems answered in an earlier try of the batch."""
        of = self._settings.state, self._batch.batch, self._batch.epoch
        return KeptAnswers(self._log.store, *of)

    def connection(self, kind: str, name: str) -> Mapping[str, str]:
        """Return how a database is reached, of the configuration."""
        return self._settings.connections.of(kind, name)

    @property
    def secrets(self) -> Mapping[str, str]:
        """Return those of the configuration, by name."""
        return self._settings.connections.of("secrets", None)

    def avro_schema(self, schema_id: int, cluster: str = "") -> str:
        """Return the writer schema registered under an id, with the registry of a cluster."""
        known = self._settings.schemas
        if known is None:
            return _registry(self._settings.registries.get(cluster, "")).by_id(schema_id)
        if schema_id not in known:
            raise UnknownSchema(schema_id)
        return known[schema_id]

    def passing(self, point: str) -> None:
        """Say which crash point the task has come to."""
        crash_point(point, self._batch.batch, self._settings.driver)

    def notes(self) -> list[Mapping[str, Any]]:
        """Return what the driver must know: change files, deliveries, milliseconds by phase."""
        phases = {k: round(v, 1) for k, v in self._phases.items()}
        found = [*self._notes, {"phases": phases, "stages": self._stages}]
        found += [{"learned": learned}] if (learned := self.learned.note()) else []
        found += [{"measures": to_json(taken)}] if (taken := self.measures.taken()) else []
        return found

    def note(self, **about: Any) -> None:
        """Tell the driver something, unless it is empty."""
        self._notes += [about] if all(about.values()) else []

    @contextmanager
    def level(self, number: int, rows: int) -> Generator[None]:
        """Note when a level began and ended, and how many rows came in."""
        start = time()
        try:
            yield
        finally:
            self._stages.append([number, int(start * 1000), int(time() * 1000), rows])

    def _spend(self, phase: str, milliseconds: float) -> None:
        self._phases[phase] = self._phases.get(phase, 0.0) + milliseconds

    @contextmanager
    def timed(self, phase: str) -> Generator[None]:
        """Count the time of a block towards a phase."""
        start = perf_counter()
        try:
            yield
        finally:
            self._spend(phase, (perf_counter() - start) * 1000)


@cache
def _registry(url: str) -> Any:
    from kaflow_engine.formats.schema_registry import Registry  # few formats need its HTTP client

    return Registry(url=url, patience=_PATIENCE_S)  # then the batch is run again, with a backoff
