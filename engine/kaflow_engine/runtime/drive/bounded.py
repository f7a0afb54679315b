"""A bounded run: the offsets at which a backfill begins and ends, and the steps between."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from secrets import token_hex

from kaflow_engine.connectors.kafka.clusters.input_topics import InputTopics
from kaflow_engine.errors import StateError
from kaflow_engine.flow.chains.chain import chains, driving_topics, edges_of
from kaflow_engine.flow.chains.gathered import groups_before
from kaflow_engine.flow.edges import Driving, SideParams
from kaflow_engine.flow.flow import Backfill, Flow
from kaflow_engine.flow.graph import projects_of, source_of, table_sinks
from kaflow_engine.runtime.batch.run import Run
from kaflow_engine.runtime.batch.stop import Ending
from kaflow_engine.runtime.drive.backfill_guard import require_settled
from kaflow_engine.runtime.drive.ticker import end_inputs
from kaflow_engine.runtime.drive.windows import (
    before_range,
    behind_range,
    with_whole_windows,
)
from kaflow_engine.runtime.planning.plan_codec import fingerprint
from kaflow_engine.runtime.source.history import Histories, begin_in_histories
from kaflow_engine.runtime.source.offsets import (
    ranges_between,
    size_of,
)
from kaflow_engine.state.log.batch_log import Offsets, StateRecord

Counts = Mapping[str, int]
"""Topic to its partitions."""

_FIRST_STEP = 3_600_000
"""Milliseconds of event time that are read first; later steps follow from the records found."""


def backfill_plan(plan: Flow, wanted: Backfill) -> Flow:
    """Return the plan of a backfill: the same rows, with a state and a control topic of its own."""
    own = with_whole_windows(plan, wanted)
    # a table of dead letters is that of the stream, whose batches it counts
    letters = own.letters and "files"
    name = f"{plan.pipeline}.{backfill_name(wanted)}"
    return replace(own, pipeline=name, backfill=wanted, letters=letters)


def backfill_name(wanted: Backfill) -> str:
    """Return what the state of a backfill is called, behind the id of its pipeline.

    >>> backfill_name(Backfill(start=1_767_225_600_000, end=1_767_229_200_000))
    'backfill-1767225600000-1767229200000'
    """
    return f"backfill-{wanted.start}-{wanted.end}"


Reach = tuple[int | None, int | None]
"""From and until when records of a topic matter; None: from the first, up to the last."""


def reach(plan: Flow, wanted: Backfill) -> dict[str, Reach]:
    """Return which records of each topic matter, in epoch milliseconds, to any chain.

    A window counts all driving records in it, also where it begins before the range or ends behind.
    A side's record meets driving records up to its own TTL later, and completes those that are at
    most the driving TTL older. Dimensions count from their first record; with `dimensions_first`
    they are read to their end before the first event, as a new pipeline does.
    """
    found: dict[int, Reach] = {}
    for chain in chains(plan):
        first = wanted.start - before_range(plan, chain) - wanted.slack
        end = wanted.end + behind_range(plan, chain) + wanted.slack
        late = end + chain.driving.ttl
        own = (first, end)
        reaches: list[tuple[Driving | SideParams, Reach]] = [
            (edge, own) for edge in edges_of(plan, chain)
        ]
        for side in (side for join in chain.joins for side in join.sides):
            if side.role == "dimension":
                reaches.append((side, (None, None if plan.dimensions_first else late)))
            else:
                reaches.append((side, (first - side.ttl, late)))
        for edge, each in reaches:
            topic = source_of(plan, edge).index
            found[topic] = _wider(found.get(topic, each), each)
    return {plan.sources[i].name: found[i] for i in sorted(found)}


def _wider(one: Reach, other: Reach) -> Reach:
    """Return the reach that holds both."""
    (since, until), (earlier, later) = one, other
    return (
        None if since is None or earlier is None else min(since, earlier),
        None if until is None or later is None else max(until, later),
    )


def new_backfill_state(
    plan: Flow,
    wanted: Backfill,
    root: Path,
    topics: InputTopics,
    now: int,
    histories: Histories,
    counts: Counts,
) -> StateRecord:
    """Return a state that begins where the warm-up does, with the offsets at which it ends.

    Driving records that the stream has not read are left to it, unless the backfill is forced.

    Args:
        plan: Of the backfill.
        wanted: The range.
        root: Where the states of all pipelines are.
        topics: Where they are.
        now: Epoch milliseconds.
        histories: Where topics begin in files.
        counts: Topic to its partitions.

    Raises:
        SourceError: No broker answers, or a topic does not exist.
        StateError: The stream may still write rows of the range, or the topic of driving records
            does not keep them all.
    """
    refuse_compacted(plan, wanted, topics)
    stream = plan.pipeline.removesuffix(f".{backfill_name(wanted)}")
    taken = require_settled(root / stream, plan.name, wanted)
    ids = topics.ids(counts)
    last = topics.offsets(counts, "latest")
    first = begin_in_histories(topics.offsets(counts, "earliest"), histories)
    start, goal = dict(first), dict(last)
    for topic, (since, until) in reach(plan, wanted).items():
        only = {topic: counts[topic]}
        if since is not None:
            earlier = {name: history.since(since) for name, history in histories.items()}
            start |= _at(topics, only, since, last, earlier)
        if until is not None:
            earlier = {name: history.until(until) for name, history in histories.items()}
            goal |= _at(topics, only, until, last, earlier)
    refuse_removed(plan, wanted, start, first)
    if taken is not None:
        for driven in (topic.name for topic in plan.sources if topic.drives):
            mine = taken.offsets.get(driven, {})
            ends = goal[driven].items()
            goal[driven] = {p: max(start[driven][p], min(end, mine.get(p, 0))) for p, end in ends}
    loaded = [t.name for t in plan.sources if t.is_kept] if plan.dimensions_first else []
    return StateRecord(
        state_id=token_hex(8),
        generation=1,
        partitions=plan.partitions,
        created_ms=now,
        start=start,
        dimension_ends={topic: last[topic] for topic in loaded},
        schemas={t.name: {c.name: c.type for c in t.columns} for t in plan.sources},
        fingerprint=fingerprint(plan),
        goal=goal,
        topic_ids=ids,
    )


def refuse_compacted(plan: Flow, wanted: Backfill, inputs: InputTopics) -> None:
    """Refuse to replace rows of records that the broker may have removed among those it keeps.

    Raises:
        StateError: The topic of the driving records of a table is compacted.
    """
    if wanted.force:
        return
    tables: dict[str, str] = {}
    for sink in table_sinks(plan):
        for topic in driving_topics(plan, sink):
            tables.setdefault(topic.name, sink.target)
    for topic, table in tables.items():
        if "compact" in inputs.settings(topic).get("cleanup.policy", ""):
            raise StateError(
                f"topic '{topic}' is compacted: table '{table}' may have rows of records that are "
                "gone, which a backfill would remove",
                hint="force the backfill, and the table has rows of the records that are left",
            )


def refuse_removed(plan: Flow, wanted: Backfill, start: Offsets, first: Offsets) -> None:
    """Refuse to make windows again of whose records the broker may have removed some.

    Args:
        plan: Of the backfill.
        wanted: The range.
        start: Where each partition is read from.
        first: The first records there are.

    Raises:
        StateError: Some partition has no record before the range, and once had others.
    """
    if wanted.force:
        return
    for sink in plan.sinks:
        if not any(groups_before(plan, each) for each in projects_of(plan, sink)):
            continue
        for topic in driving_topics(plan, sink):
            for partition, at in start[topic.name].items():
                if 0 < at == first[topic.name][partition]:
                    raise StateError(
                        f"partition {partition} of topic '{topic.name}' begins behind the start of "
                        f"{wanted}: records of its windows may be gone, which the stream has "
                        "counted",
                        hint="choose a later start, or force it, and windows count the records "
                        "that are left",
                    )


class BoundedRead:
    """Reads topics side by side in event time from where a state stands to its goal."""

    def __init__(self, run: Run, wanted: Backfill, goal: Offsets) -> None:
        self._run, self._goal = run, goal
        times = reach(run.plan, wanted).values()
        self._since = min((at for at, _ in times if at is not None), default=wanted.start)
        self._until = max((at for _, at in times if at is not None), default=wanted.end)

    def follow(self) -> Ending:
        """Run batches until the goal, and then what is due at the end of all time; then let sinks
        show what they have."""
        run = self._run
        for ends in self._steps():
            if ending := run.read_to(ends):
                return ending
        if run.limits.stop.is_set():
            return "drained"
        end_inputs(run)
        for sink in run.runner.sinks:
            sink.finish()
        return "caught up"

    def _steps(self) -> Iterator[Offsets]:
        """Yield one end after the other, each further on in time, with few enough records."""
        time, step = self._since, _FIRST_STEP
        while time < self._until:
            until = min(time + step, self._until)
            ends = self._ends(until)
            size = size_of(ranges_between(self._run.standing.offsets, ends))
            if size > self._run.limit.records and step > 1:
                step = max(1, step // 2)
                continue
            yield ends
            time, step = until, step * 2
        yield self._goal

    def _ends(self, until: int) -> Offsets:
        """Return where the records before a time end, between where the run stands and its goal."""
        counts = {topic: len(ps) for topic, ps in self._goal.items()}
        earlier = {topic: each.until(until) for topic, each in self._run.histories.items()}
        found = _at(self._run.inputs.topics, counts, until, self._goal, earlier)
        at = self._run.standing.offsets
        return {
            topic: {
                p: max(at.get(topic, {}).get(p, 0), min(end, self._goal[topic][p]))
                for p, end in ps.items()
            }
            for topic, ps in found.items()
        }


def _at(
    topics: InputTopics, counts: Counts, time: int, last: Offsets, in_files: Offsets
) -> Offsets:
    """Return the first offset that is not before a time; where there is none, the last.

    Args:
        topics: Where they are.
        counts: Which ones.
        time: Epoch milliseconds.
        last: Where partitions end.
        in_files: What histories say of that time, where they reach that far.
    """
    found = topics.offsets(counts, max(0, time))
    return {
        topic: {p: last[topic][p] if at < 0 else at for p, at in ps.items()}
        | in_files.get(topic, {})
        for topic, ps in found.items()
    }
