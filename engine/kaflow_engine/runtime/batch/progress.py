"""Collects the progress of one pipeline and publishes every change."""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, assert_never

from kaflow_engine.flow.chains.chain import chains
from kaflow_engine.flow.chains.clocks import clocks
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import joins, levels, operator_of_state, side_name
from kaflow_engine.flow.operators import Aggregate, KeyedJoin, Ledger
from kaflow_engine.flow.tables import Materialize, TableJoin
from kaflow_engine.flow.timed import Runs, Throttle
from kaflow_engine.measures import Measured
from kaflow_engine.operators.watermark import WatermarkState, last_chain
from kaflow_engine.runtime.batch.position import Position
from kaflow_engine.runtime.batch.runner import BatchDone
from kaflow_engine.runtime.batch.settled import settled_tables
from kaflow_engine.runtime.batch.task_metrics import (
    links,
    measured,
    rows_written,
    side_outputs,
    skew,
    stage_spans,
    state_sizes,
)
from kaflow_engine.state.log.batch_log import Offsets
from kaflow_engine.telemetry.progress import Progress
from kaflow_engine.telemetry.steps import steps_of

OnProgress = Callable[[Progress], None]

_WINDOW_S = 10.0
_LOOK_S = 1.0


@dataclass(frozen=True, slots=True)
class _Recent:
    """A batch that ended a moment ago."""

    at: float
    read: int = 0
    seconds: float = 0.0
    steps: Mapping[str, float] = field(default_factory=dict[str, float])


class Watch:
    """The progress of one pipeline; used by one thread at a time."""

    def __init__(
        self,
        pipeline: str,
        on_progress: OnProgress,
        clock: Callable[[], float] = time.monotonic,
        received: Callable[[], Measured] = dict,
    ) -> None:
        self.now = Progress(pipeline=pipeline)
        self.batches = 0
        self._tell = on_progress
        self._clock = clock
        self._recent = deque([_Recent(clock())])
        self._sizes: dict[str, tuple[int, int]] = {}
        self._received = received
        self._looked = self._recent[0].at

    def say(self, **changes: Any) -> None:
        """Change some fields of the progress and tell."""
        self.now = replace(self.now, **changes)
        self._tell(self.now)

    def look(self) -> None:
        """Tell what receivers have measured since, from time to time."""
        if self._clock() - self._looked < _LOOK_S:
            return
        self._looked = self._clock()
        if (received := (*self._received().items(),)) != self.now.received:
            self.say(received=received)

    def batch_done(self, done: BatchDone, ends: Offsets, plan: Flow, run: int = 0) -> None:
        """Tell of a batch of a plan; `ends` is how far the topics reached when it began."""
        report, at, before = done.report, done.standing, self.now
        read = sum(part.count for part in report.partitions.values())
        self.batches += 1
        steps, ended = steps_of(done.phases), self._clock()
        paused = max(ended - self._recent[-1].at - done.seconds, 0.0) if before.batch else 0.0
        self._note(_Recent(ended, read, done.seconds, steps))
        self._sizes |= state_sizes(report)
        place, holder_at = done.holder or (None, None)
        newest = _newest(before.newest, done)
        self.say(
            batch=at.batch,
            run=run,
            batch_records=read,
            batch_ms=done.seconds * 1000,
            records=before.records + read,
            records_per_second=self._per_second(last.read for last in self._after_first()),
            lag=lag_of(at.offsets, ends),
            offsets=at.offsets,
            counters=at.counters,
            watermark=at.watermark.least,
            settled=settled_tables(plan, done.watermarks, at),
            batch_time=at.batch_time,
            phases=done.phases,
            newest=newest,
            holder=place,
            holder_at=holder_at,
            holder_newest=_newest_of_last(at.watermark, newest, plan),
            waited=_waited(at, plan),
            lookups=_added(before.lookups, report.lookups),
            sizes=_by_operator(self._sizes, plan),
            busy=min(self._per_second(last.seconds for last in self._after_first()), 1.0),
            steps=_sum(last.steps for last in self._recent),
            batches=self.batches,
            spent=_sum((before.spent, steps)),
            paused=before.paused + paused,
            empty_batches=before.empty_batches + (not read),
            empty_streak=0 if read else before.empty_streak + 1,
            stages=stage_spans(report, partial(level_name, plan)),
            links=links(report),
            batch_end=time.time_ns() // 1_000_000,
            skew=skew(report),
            written=rows_written(before.written, report),
            side_outputs=side_outputs(before.side_outputs, report),
            measured=measured(before.measured, report),
            received=(*self._received().items(),),
            letters=before.letters + sum(note.get("dead_letters", 0) for note in report.notes),
        )

    def _note(self, batch: _Recent) -> None:
        self._recent.append(batch)
        while len(self._recent) > 2 and batch.at - self._recent[0].at > _WINDOW_S:
            self._recent.popleft()

    def _after_first(self) -> list[_Recent]:
        return list(self._recent)[1:]

    def _per_second(self, values: Iterable[float]) -> float:
        since = self._recent[-1].at - self._recent[0].at
        return sum(values) / since if since > 0 else 0.0


def lag_of(at: Offsets, ends: Offsets) -> dict[str, int]:
    """Return, by topic, how many offsets are not read yet."""
    return {
        topic: sum(max(end - at.get(topic, {}).get(p, 0), 0) for p, end in ps.items())
        for topic, ps in sorted(ends.items())
    }


def operator_name(plan: Flow, partition: str) -> str:
    """Return the name of the operator whose state a partition `<state>-<p>` holds."""
    operator = operator_of_state(plan, int(partition.partition("-")[0]))
    match operator:
        case (
            Ledger(id=name)
            | Aggregate(id=name)
            | Materialize(id=name)
            | TableJoin(id=name)
            | Throttle(id=name)
            | Runs(id=name)
        ):
            return name
        case KeyedJoin(state=state):
            return f"{state}:{_joined(plan, operator)}"
        case _:
            assert_never(operator)


def level_name(plan: Flow, level: int) -> str:
    """Return what the tasks of a level do: `map`, `join <topics>`, or `deliver`."""
    if level == 0:
        return "map"
    at = levels(plan)
    here = [f"join {_joined(plan, join)}" for join in joins(plan) if at[join.id] == level]
    return ", ".join(dict.fromkeys(here)) or "deliver"


def _joined(plan: Flow, join: KeyedJoin) -> str:
    return "+".join(side_name(plan, side) for side in join.sides)


def _by_operator(sizes: Mapping[str, tuple[int, int]], plan: Flow) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for partition, size in sorted(sizes.items()):
        found = _added(found, {operator_name(plan, partition): size})
    return found


def _newest_of_last(marks: WatermarkState, newest: Mapping[str, int], plan: Flow) -> int | None:
    """Return the greatest event time of the topics that the least watermark follows."""
    followed = clocks(plan)
    topics = followed[last_chain(marks, followed)]
    names = [topic.clock_name for topic in topics]
    return max((newest[name] for name in names if name in newest), default=None)


def _waited(at: Position, plan: Flow) -> int | None:
    """Return how long the row has waited that is due next in its chain, of all chains the most."""
    marks = at.watermark.values
    return max(
        (
            marks[chain.number] - (at.next_due[chain.number] - chain.driving.ttl)
            for chain in chains(plan)
            if chain.number in marks and chain.number in at.next_due
        ),
        default=None,
    )


def _newest(known: Mapping[str, int], done: BatchDone) -> dict[str, int]:
    found = dict(known)
    for (clock, _), ts in done.report.times.items():
        found[clock] = max(found.get(clock, ts), ts)
    return found


def _added(
    known: Mapping[str, tuple[int, int]], new: Mapping[str, tuple[int, int]]
) -> dict[str, tuple[int, int]]:
    found = dict(known)
    for name, (first, second) in new.items():
        before = found.get(name, (0, 0))
        found[name] = before[0] + first, before[1] + second
    return found


def _sum(steps: Iterable[Mapping[str, float]]) -> dict[str, float]:
    total: Counter[str] = Counter()
    for each in steps:
        total.update(each)  # type: ignore[arg-type]  # floats add up as well
    return dict(total)
