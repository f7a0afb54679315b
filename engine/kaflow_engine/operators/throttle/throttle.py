"""A throttle in one task: of each key a change leaves, or is held until its time has come."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.flow.chains.chain import chain_of
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import operator_of, target_of
from kaflow_engine.flow.timed import Throttle
from kaflow_engine.formats.pick import keep
from kaflow_engine.operators.keyed_state import StepState
from kaflow_engine.operators.rows.partitioning import behind_shard, part_of_shard
from kaflow_engine.operators.rows.reports import BATCH_TIME, due_report, exchange_rows, report_rows
from kaflow_engine.operators.rows.row_order import in_order
from kaflow_engine.operators.rows.schemas import EXCHANGE, NO_RECORD, READY
from kaflow_engine.operators.rows.task import BatchContext, Task
from kaflow_engine.operators.throttle.sent_keys import SENT, Held, SentKey, read_sent, sent_value
from kaflow_engine.operators.watermark import END
from kaflow_engine.state.keys import entry_key, split_entry


def run_throttle(
    flow: Flow, throttle: Throttle, batch: BatchContext, rows: pa.Table, task: Task
) -> pa.Table:
    """Run a throttle over the rows of one task.

    Args:
        flow: What runs.
        throttle: Which operator of it.
        batch: Which batch.
        rows: Schema EXCHANGE; rows for others pass through untouched.
        task: The state before the batch; takes the changes.

    Returns:
        Schema EXCHANGE.
    """
    mine = pc.equal(rows["target"], target_of(flow, throttle))
    ends = batch.horizon(chain_of(flow, throttle).number) >= END
    work = _Throttling(
        flow, throttle, END if ends else batch.batch_time, _Came(keep(rows, mine)), task
    )
    if ends or batch.may_be_due(BATCH_TIME):
        work.take_due()
    work.take_others()
    due = work.state.write()
    report = {"due": due_report(BATCH_TIME, None if due is None else due - 1)}
    sent = [work.came.leaving(), work.released(batch.batch)]
    sink = next(sink for sink in flow.sinks if throttle.id in sink.inputs)
    target = pa.scalar(target_of(flow, sink), pa.int32())
    leaving = pa.concat_tables(sent)
    at = EXCHANGE.get_field_index("target")
    leaving = leaving.set_column(at, EXCHANGE.field(at), pa.repeat(target, leaving.num_rows))
    return pa.concat_tables([rows.filter(pc.invert(mine)), leaving, report_rows([report])])


class _Came:
    """The changes of a batch: of each key the last one, and which keys are closed."""

    def __init__(self, rows: pa.Table) -> None:
        places = pa.array(np.arange(rows.num_rows))
        order = in_order(rows.drop_columns(["value"]).append_column("$place", places))["$place"]
        self._rows = rows.take(order)
        names: list[bytes] = self._rows["key"].to_pylist()
        ready = pc.equal(self._rows["kind"], READY).to_pylist()
        last: dict[bytes, int] = {}
        closed: dict[bytes, int] = {}
        for place, (name, is_ready) in enumerate(zip(names, ready, strict=True)):
            (last if is_ready else closed)[name] = place
        self.last = {behind_shard(name): place for name, place in last.items()}
        self.closed = {behind_shard(name): place for name, place in closed.items()}
        self._values: list[bytes | None] = self._rows["value"].to_pylist()
        self._headers: list[str | None] = self._rows["payload"].to_pylist()
        self._times: list[int] = self._rows["ts"].to_pylist()
        self._leaving: dict[int, Held] = {}

    def change(self, key: bytes) -> Held | None:
        """Return the change of a key; None: it has none."""
        place = self.last.get(key)
        if place is None:
            return None
        return Held(self._values[place], self._times[place], self._headers[place])

    def send(self, key: bytes, change: Held) -> bool:
        """Let a change leave in the place of what came under its key; false where nothing did."""
        place = self.last.get(key, self.closed.get(key))
        if place is None:
            return False
        self._leaving[place] = change
        return True

    def leaving(self) -> pa.Table:
        """Return what leaves of what came, schema EXCHANGE."""
        places = sorted(self._leaving)
        found = self._rows.take(pa.array(places, pa.int64()))
        some = [self._leaving[place] for place in places]
        columns = {
            "kind": pa.repeat(pa.scalar(READY, pa.int32()), len(some)),
            "value": pa.array([each.value for each in some], pa.binary()),
            "payload": pa.array([each.headers for each in some], pa.string()),
            "ts": pa.array([each.ts for each in some], pa.int64()),
        }
        for name, column in columns.items():
            found = found.set_column(EXCHANGE.get_field_index(name), EXCHANGE.field(name), column)
        return found


class _Throttling:
    """One throttle in one task of one batch."""

    def __init__(self, flow: Flow, throttle: Throttle, now: int, came: _Came, task: Task) -> None:
        self.state = StepState(task, throttle.state, flow.partitions)
        self.came = came
        self._flow, self._throttle, self._now = flow, throttle, now
        self._seen: set[bytes] = set()
        self._released: list[tuple[int, bytes, Held]] = []

    def take_due(self) -> None:
        """Let changes leave whose time has come, and forget keys that have none."""
        for due in self.state.due(self._now + 1):
            entries = [entry for _, entry in due]
            for (at, entry), value in zip(due, self.state.values(entries), strict=True):
                assert value is not None, "what is due is there"
                self._settle(entry, at, read_sent(value))

    def _settle(self, entry: bytes, at: int, known: SentKey) -> None:
        """Send what there is of a key that may send again."""
        key = split_entry(entry)[0]
        self._seen.add(key)
        change = self.came.change(key) or known.held
        if change is None or known.shows(change):
            self.state.remove([entry])
            return
        if not self.came.send(key, change):
            self._released.append((at, key, change))
        until = self._until(key)
        if until is None:
            self.state.remove([entry])
        else:
            self.state.postpone(entry, until)
            self.state.put(entry, sent_value(_sent(until, change)))

    def take_others(self) -> None:
        """Send or hold what came under other keys."""
        keys = sorted({*self.came.last, *self.came.closed} - self._seen)
        entries = [entry_key(key, SENT) for key in keys]
        for key, entry, value in zip(keys, entries, self.state.values(entries), strict=True):
            if value is not None:
                self._hold(key, entry, read_sent(value))
            elif (change := self.came.change(key)) is not None:
                self.came.send(key, change)
                until = self._until(key)
                if until is not None:
                    self.state.put(entry, sent_value(_sent(until, change)), until)

    def _hold(self, key: bytes, entry: bytes, known: SentKey) -> None:
        """Hold the change of a key that may not send yet, unless the key is closed."""
        change = self.came.change(key) or known.held
        if key in self.came.closed:
            if change is not None and not known.shows(change):
                self.came.send(key, change)
            self.state.forget([(known.until, entry)])
            return
        held = None if change is None or known.shows(change) else change
        self.state.put(entry, sent_value(replace(known, held=held)))

    def _until(self, key: bytes) -> int | None:
        """Return when a key that sends now may send again; None: that need not be known."""
        if self._now >= END or not self._throttle.every or key in self.came.closed:
            return None
        return self._now + self._throttle.every

    def released(self, batch: int) -> pa.Table:
        """Return what was held and leaves, by when it fell due, then by key; schema EXCHANGE."""
        some = sorted(self._released, key=lambda each: each[:2])
        times = pa.array([at for at, _, _ in some], pa.int64())
        first = operator_of(self._flow, self._throttle.inputs[0])
        return exchange_rows(
            len(some),
            part=pa.array(_parts(self._flow, (key for _, key, _ in some)), pa.int32()),
            kind=READY,
            side=target_of(self._flow, first),
            key=pa.array([key[1:] for _, key, _ in some], pa.binary()),
            value=pa.array([change.value for _, _, change in some], pa.binary()),
            payload=pa.array([change.headers for _, _, change in some], pa.string()),
            ts=pa.array([change.ts for _, _, change in some], pa.int64()),
            t_phase=0,
            t_time=times,
            t_role=0,
            t_topic=target_of(self._flow, self._throttle),
            t_part=0,
            t_off=pa.array(range(len(some)), pa.int64()),
            d_batch=batch,
            d_time=times,
            d_part=NO_RECORD,
            d_off=NO_RECORD,
        )


def _sent(until: int, change: Held) -> SentKey:
    return SentKey(until, change.value, None, change.headers)


def _parts(flow: Flow, keys: Iterable[bytes]) -> list[int]:
    return [part_of_shard(key[0], flow.partitions) for key in keys]
