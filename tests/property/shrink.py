"""Makes a failing scenario small: whatever can go without ending the failure goes."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from time import monotonic

from tests.property.executor import How
from tests.property.scenario import Scenario, Writing
from tests.property.strategies import with_items
from tests.property.unions import with_types
from tests.reference.beside import NONE, columns_in
from tests.reference.conditions import Column, aliases_of, column_of
from tests.reference.delays import with_delays
from tests.reference.grouping import Grouping
from tests.reference.pipeline import Chain, OraclePipeline, Output, Topic, Write

Candidate = tuple[Scenario, How]
Fails = Callable[[Scenario, How], bool]

SECONDS = 60.0
"""About how long shrinking may take."""


def shrink(
    scenario: Scenario, how: How, fails: Fails, seconds: float = SECONDS
) -> tuple[Scenario, How]:
    """Return the smallest scenario that is found to fail.

    Args:
        scenario: It fails.
        how: In this way.
        fails: Tells whether another one fails too; false where it is no sound scenario.
        seconds: About how long to try.
    """
    until = monotonic() + seconds
    again = True
    while again:
        again = False
        for smaller in (_ways, _fewer_records, _fewer_cuts, _simpler_pipelines, _simpler_records):
            place = 0
            while monotonic() < until:
                candidates = list(smaller(scenario, how))
                if place >= len(candidates):
                    break
                if fails(*candidates[place]):
                    scenario, how = candidates[place]
                    again = True
                else:
                    place += 1
    return scenario, how


def _ways(scenario: Scenario, how: How) -> Iterator[Candidate]:
    others = {How(), replace(how, crashes=None), replace(how, spread=False)}
    others |= {replace(how, replay=False)}
    yield from ((scenario, other) for other in sorted(others - {how}, key=repr))


def _fewer_records(scenario: Scenario, how: How) -> Iterator[Candidate]:
    count = len(scenario.records)
    size = count // 2
    while size:
        for start in range(0, count, size):
            kept = iter(range(count))
            items = tuple(
                item
                if isinstance(item, int)
                else tuple(r for r in item if not start <= next(kept) < start + size)
                for item in scenario.items
            )
            if any(items):
                yield with_items(scenario, items), how
        size //= 2


def _fewer_cuts(scenario: Scenario, how: How) -> Iterator[Candidate]:
    items = scenario.items
    for place, (item, after) in enumerate(pairwise(items)):
        if isinstance(item, int):
            yield with_items(scenario, items[:place] + items[place + 1 :]), how
        elif not isinstance(after, int):
            yield with_items(scenario, (*items[:place], item + after, *items[place + 2 :])), how
    if scenario.bounded:
        yield replace(scenario, bounded=False), how
    if scenario.start is not None:
        yield replace(scenario, start=None), how


def _simpler_pipelines(scenario: Scenario, how: How) -> Iterator[Candidate]:
    plain = Writing()
    if scenario.writing != plain:
        yield replace(scenario, writing=plain), how
        for name in ("turned", "right", "using", "relation", "united", "tables"):
            yield replace(scenario, writing=replace(scenario.writing, **{name: False})), how
    for pipeline in _simpler(scenario.pipeline):
        items = tuple(
            item
            if isinstance(item, int)
            else tuple(record for record in item if record.topic in pipeline.topics)
            for item in scenario.items
        )
        if any(items):
            yield with_items(replace(scenario, pipeline=pipeline), items), how


def _simpler_records(scenario: Scenario, how: How) -> Iterator[Candidate]:
    items = scenario.items
    for place, item in enumerate(items):
        for at, record in enumerate(() if isinstance(item, int) else item):
            others = [replace(record, partition=0)] if record.partition else []
            for name, value in (record.value or {}).items():
                rest = {n: v for n, v in (record.value or {}).items() if n != name}
                if value is not None:
                    others.append(replace(record, value=rest))
            for other in others:
                assert not isinstance(item, int)
                changed = (*item[:at], other, *item[at + 1 :])
                yield with_items(scenario, (*items[:place], changed, *items[place + 1 :])), how


def _simpler(pipeline: OraclePipeline) -> Iterator[OraclePipeline]:
    for gone in pipeline.chains:
        yield from _with_writes(pipeline, [w for w in pipeline.writes if w.chain != gone])
    for chain in pipeline.chains:
        for alias in chain.sides[1:]:
            yield from _without(pipeline, chain, alias)
    for gone in pipeline.outputs:
        yield from _with_writes(pipeline, [w for w in pipeline.writes if w not in gone])
    for gone in pipeline.writes:
        yield from _with_writes(pipeline, [w for w in pipeline.writes if w != gone])
    for place, write in enumerate(pipeline.writes):
        for simpler in _simpler_writes(write):
            writes = [*pipeline.writes[:place], simpler, *pipeline.writes[place + 1 :]]
            yield from _with_writes(pipeline, writes)
    for branches in pipeline.outputs:
        for gone in branches[0].select:
            if gone.name != branches[0].key and len(branches[0].select) > 1:
                yield from _with_writes(pipeline, _without_column(pipeline, branches, gone))
    if any(write.headers is not None for write in pipeline.writes):
        yield replace(pipeline, writes=tuple(replace(w, headers=None) for w in pipeline.writes))
    for gone in pipeline.require:
        yield replace(pipeline, require=tuple(n for n in pipeline.require if n != gone))
    if pipeline.reemit:
        yield replace(pipeline, reemit=False)
    for chain in pipeline.chains:
        for join in chain.joins:
            on = tuple((column_of(left), column_of(right)) for left, right in join.on)
            for changed in (replace(join, inner=False), replace(join, on=on)):
                if changed != join:
                    joins = tuple(changed if j == join else j for j in chain.joins)
                    yield from _with_chain(pipeline, chain, replace(chain, joins=joins))
    for name, topic in pipeline.topics.items():
        for simpler in _simpler_topics(topic):
            yield replace(pipeline, topics={**pipeline.topics, name: simpler})


def _without_column(
    pipeline: OraclePipeline, branches: Sequence[Write], gone: Output
) -> Iterator[Write]:
    """Yield the writes without a column of one output."""
    for write in pipeline.writes:
        select = tuple(each for each in write.select if each.name != gone.name)
        yield replace(write, select=select) if write in branches else write


def _with_chain(pipeline: OraclePipeline, old: Chain, new: Chain) -> Iterator[OraclePipeline]:
    writes = (replace(w, chain=new) if w.chain == old else w for w in pipeline.writes)
    yield from _with_writes(pipeline, writes)


def _simpler_writes(write: Write) -> Iterator[Write]:
    for gone in write.where:
        yield replace(write, where=tuple(c for c in write.where if c != gone))
    for output in write.select:
        if not isinstance(output.term, Column):
            plain = replace(output, term=column_of(output.term))
            yield replace(write, select=tuple(plain if o == output else o for o in write.select))
    for gone in range(1, len(write.groups)):
        yield replace(write, groups=write.groups[:gone])
    for place, group in enumerate(write.groups):
        for simpler in _simpler_groups(group):
            groups = (*write.groups[:place], simpler, *write.groups[place + 1 :])
            yield replace(write, groups=groups)


def _simpler_groups(group: Grouping) -> Iterator[Grouping]:
    if group.having:
        yield replace(group, having=())
    for gone in group.calls:
        if len(group.calls) > 1:
            calls = tuple(call for call in group.calls if call != gone)
            select = tuple(each for each in group.select if each[1] != gone.name)
            yield replace(group, calls=calls, select=select)
        if gone.where:
            plain = tuple(replace(c, where=()) if c == gone else c for c in group.calls)
            yield replace(group, calls=plain)
    for gone in group.keys:
        keys = tuple(key for key in group.keys if key != gone)
        select = tuple(each for each in group.select if each[1] != gone)
        yield replace(group, keys=keys, select=select)


def _with_writes(pipeline: OraclePipeline, writes: Iterable[Write]) -> Iterator[OraclePipeline]:
    """Yield the pipeline with other outputs, which requires and reads what they still have."""
    numbers = Counter[str]()
    made: list[Write] = []
    for write in writes:
        made.append(replace(write, branch=numbers[write.topic]))
        numbers[write.topic] += 1
    names = {output.name for write in made for output in write.select}
    read = {name for write in made for name in write.chain.topics}
    if made:
        changed = with_types(
            replace(
                pipeline,
                writes=tuple(made),
                require=tuple(name for name in pipeline.require if name in names),
                topics={name: topic for name, topic in pipeline.topics.items() if name in read},
            )
        )
        yield with_delays(changed)


def _simpler_topics(topic: Topic) -> Iterator[Topic]:
    plain = Topic(name=topic.name, columns=topic.columns, dimension=topic.dimension, ttl=topic.ttl)
    if replace(topic, partitions=1) != plain:
        yield plain
        times = ("lateness", "idle_timeout", "max_future", "event_time")
        for name in (*times, "on_error", "on_null", "key"):
            yield replace(topic, **{name: getattr(plain, name)})
        yield replace(topic, lookup="current", history=None)


def _without(pipeline: OraclePipeline, chain: Chain, alias: str) -> Iterator[OraclePipeline]:
    """Yield the pipeline without a join, if nothing that stays needs it."""
    joins = tuple(join for join in chain.joins if join.alias != alias)
    if any(left.alias == alias for join in joins for left, _ in join.on):
        return
    smaller = replace(chain, joins=joins)
    writes = [
        replace(_write_without(write, alias, len(branches) > 1), chain=smaller)
        if write.chain == chain
        else write
        for branches in pipeline.outputs
        for write in branches
    ]
    if all(
        (write.select or write.groups) and (not write.key or write.key_term is not None)
        for write in writes
    ):
        yield from _with_writes(pipeline, writes)


def _write_without(write: Write, alias: str, in_union: bool) -> Write:
    """Return a query without a side; in a union another column stands where one was."""
    other = Column(write.chain.driving, "s")
    select = tuple(
        output if output.term.alias != alias else replace(output, term=other)
        for output in write.select
        if output.term.alias != alias or in_union or write.groups
    )
    where = tuple(c for c in write.where if alias not in aliases_of(c))
    unnests = tuple(
        replace(each, list=replace(each.list, alias=write.chain.driving))
        if each.list.alias == alias
        else each
        for each in write.unnests
    )
    reads = alias in {column.alias for column in columns_in(write.headers)}
    headers = NONE if reads else write.headers
    return replace(write, select=select, where=where, unnests=unnests, headers=headers)
