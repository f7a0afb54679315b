"""A sink that is given the rows of each batch in one place, and hears when it is committed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from logging import Logger, getLogger
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from kaflow_engine.connectors.contract import (
    Bounded,
    Capabilities,
    Delivery,
    FinishedBatch,
    Outlet,
    Output,
    Owner,
    Settings,
    TaskPart,
    Unfit,
    Written,
)
from kaflow_engine.connectors.holding import Holding
from kaflow_engine.connectors.hooked.calls import CONTRACT, AnyOptions, Calls
from kaflow_engine.connectors.unheld import UnheldRows
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.records import DELETED, KEY
from kaflow_engine.measures import Measured, Measures
from kaflow_engine.model.columns import Column
from kaflow_engine.plugins.metrics import PluginMetrics
from kaflow_engine.plugins.raised import OF_SINKS, plugin_errors

if TYPE_CHECKING:
    import pyarrow as pa  # planning asks for capabilities only, and it takes long to load

OPERATION = "_gs_op"
"""The column of its rows that says what happens to each: `i`, `u` or `d`."""
_MOST_ROWS = 16_384
"""Of one call of `process_batch`."""
_AGAIN = "after a failure, the rows of the last batch come again, with its number"


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenSink:
    """What a sink is opened with."""

    name: str
    """The output."""
    options: BaseModel
    """What the author says, as the model of the kind has it."""
    settings: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """What the configuration says of the plugin; secrets among it."""
    columns: Mapping[str, str]
    """The columns of its rows, with their DuckDB types; `_gs_op` stands beside them."""
    key: str | None
    """The column by which rows replace each other, if any."""
    owner: str
    """Whose numbers the epochs are: another state counts from 1 again."""
    metrics: PluginMetrics
    """Records what it measures, which counts with the next commit."""

    @property
    def logger(self) -> Logger:
        """Where it can say what it does."""
        return getLogger(f"kaflow.sink.{self.name}")


class SinkHooks:
    """A kind of sink and, of each of its outputs in a run, the object that takes the rows.

    Epochs are the numbers of batches. One that writes rows and number in one step, at
    `process_checkpoint_marker`, and tells the number in `last_epoch`, has each row once: it says
    `guarantee = "exactly_once"`. All rows of a batch pass the driver.
    """

    contract = CONTRACT
    options: type[BaseModel] = AnyOptions
    guarantee: Delivery = "at_least_once"
    reason = _AGAIN
    """Why it promises what it does, as `kaflow explain` says it."""
    given: GivenSink

    # what an author writes, plain or async

    def initialize(self) -> Any:
        """Begin; `given` is there."""

    def last_epoch(self) -> Any:
        """Return the last epoch of `given.owner` whose rows are there: of one that is exactly once.
        None or 0: none. What is there does not come again."""

    def process_batch(self, data: "pa.RecordBatch") -> Any:
        """Take rows of the epoch whose marker comes next, in their order.

        Raises:
            SinkAway: It may heal: the batch runs again. So may connections that break and time-outs
                of Python.
            SinkUnfit: Someone must act.
        """
        raise NotImplementedError

    def process_checkpoint_marker(self, epoch: int) -> Any:
        """Let all rows of an epoch be where they survive; it is committed when this returns."""

    def process_checkpoint_finalizer(self, epoch: int) -> Any:
        """Hear that an epoch is committed, and never comes again. At least once: a run that begins
        says it of the last one."""

    def terminate(self) -> Any:
        """End; the object is not used again."""

    # what the engine asks

    @property
    def outlet(self) -> Outlet | None:
        """What opens its outputs."""
        return _Outlet(type(self))

    def capabilities(self, delivery: Delivery, settings: Settings) -> Capabilities:
        """Return what it promises."""
        return Capabilities(
            accepts=frozenset({"append", "upsert"}),
            commit="driver",
            guarantee=self.guarantee,
            reason=self.reason,
            ordered=True,
            backfills=False,
            finalizes=True,
            measures=True,
        )

    def unfit(self, columns: Sequence[Column], settings: Settings) -> Sequence[Unfit]:
        """Return nothing: rows are Arrow."""
        return ()


@dataclass(frozen=True, slots=True)
class _Outlet:
    kind: type[SinkHooks]

    def task(self, output: Output, owner: Owner) -> "_HandedOver":
        return _HandedOver(output)

    def look(self, output: Output, columns: "pa.Schema", owner: Owner) -> Sequence[Holding]:
        if self.kind.guarantee != "exactly_once" or not owner.state:
            return ()
        sink = HookedSink(self.kind, output, owner)
        try:
            held = sink.held
        finally:
            sink.ended()
        found = Holding(
            state=owner.state,
            generation=owner.generation,
            batch=held,
            table=output.name,
            kept_in="ledger",
        )
        return (found,) if held else ()

    def hand_over(self, output: Output, columns: "pa.Schema", owner: Owner) -> None:
        """Do nothing: rows come with their owner."""

    def open(
        self, output: Output, columns: "pa.Schema", owner: Owner, bounded: Bounded | None
    ) -> "HookedSink":
        return HookedSink(self.kind, output, owner)


@dataclass(frozen=True, slots=True)
class _HandedOver:
    """Hands the rows of a task to the driver."""

    output: Output

    def write(self, part: TaskPart) -> Written:
        from kaflow_engine.connectors.rows_in_notes import note_of_rows

        count = {self.output.name: part.rows.num_rows}
        return Written(rows=count, notes=(note_of_rows(self.output, part.rows),))


class HookedSink(UnheldRows):
    """One output of a run, whose object begins when there is something to say to it."""

    def __init__(self, kind: type[SinkHooks], output: Output, owner: Owner) -> None:
        self._kind, self._output, self._owner = kind, output, owner
        self._called = f"sink '{output.name}'"
        self._calls = Calls()
        self._measures = Measures()
        self._object: SinkHooks | None = None
        self._held = 0

    @property
    def capabilities(self) -> Capabilities:
        """What its kind promises."""
        return self._kind().capabilities(self._output.delivery, self._output.settings)

    @property
    def held(self) -> int:
        """The last batch that it has, of one that is exactly once; else 0."""
        if self._kind.guarantee == "exactly_once":
            self._begun()
        return self._held

    def commit(self, batch: FinishedBatch) -> None:
        """Give it the rows of a batch, and then the marker, unless it has them."""
        from kaflow_engine.connectors.rows_in_notes import rows_of_notes

        sink = self._begun()
        if batch.number <= self._held:
            return
        rows = rows_of_notes(self._output, batch.notes)
        for part in hook_rows(self._output, rows) if rows is not None and rows.num_rows else ():
            self._call(sink.process_batch, part)
        self._call(sink.process_checkpoint_marker, batch.number)
        if sink.guarantee == "exactly_once":
            self._held = batch.number

    def delivered(self, batch: int) -> bool:
        """Tell whether it has said that the rows of a batch are there."""
        return self.held >= batch

    def finalized(self, batch: int) -> None:
        """Say that a batch is committed."""
        self._call(self._begun().process_checkpoint_finalizer, batch)

    def measured(self) -> Measured:
        """Return what its object has measured since."""
        return self._measures.handed_over()

    def ended(self) -> None:
        """Let it end."""
        if self._object is not None:
            self._call(self._object.terminate)
            self._object = None
        self._calls.close()

    def _begun(self) -> SinkHooks:
        if self._object is None:
            made = self._kind()
            made.given = self._given(made.options)
            self._call(made.initialize)
            if made.guarantee == "exactly_once":
                self._held = int(self._call(made.last_epoch) or 0)
            self._object = made
        return self._object

    def _given(self, options: type[BaseModel]) -> GivenSink:
        output, owner = self._output, self._owner
        return GivenSink(
            name=output.name,
            options=options.model_validate(dict(output.settings)),
            settings=output.connection,
            columns={column.name: column.type for column in output.columns},
            key=output.key,
            owner=f"{owner.state}-{owner.generation}",
            metrics=PluginMetrics(output.name.partition(":")[0], self._measures),
        )

    def _call(self, hook: Any, *given: object) -> Any:
        with plugin_errors(OF_SINKS, self._called, f"fails at '{hook.__name__}'"):
            return self._calls(hook, *given)


def hook_rows(output: Output, rows: "pa.Table") -> "Sequence[pa.RecordBatch]":
    """Return rows as hooks are given them: the columns of an output and what happens to each; of
    one that goes, its key alone."""
    from kaflow_engine.duck.queries import query

    columns = [identifier(column.name) for column in output.columns]
    for place, column in enumerate(output.columns):
        if column.name == output.key:
            gone = f"TRY_CAST({identifier(KEY)} AS {column.type})"
            name = columns[place]
            columns[place] = (
                f"CASE WHEN {identifier(DELETED)} THEN {gone} ELSE {name} END AS {name}"
            )
    if OPERATION not in rows.column_names:
        stays = "u" if output.changes else "i"
        said = f"CASE WHEN {identifier(DELETED)} THEN 'd' ELSE '{stays}' END"
        columns.append(f"{said} AS {OPERATION}")
    found = query(f"SELECT {', '.join(columns)} FROM rows", rows)
    return found.combine_chunks().to_batches(max_chunksize=_MOST_ROWS)
