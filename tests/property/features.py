"""What a scenario exercises, by name: the measure of what the grammar covers."""

from collections import Counter
from collections.abc import Iterator
from itertools import groupby

from tests.property.executor import How
from tests.property.features_of_groups import EXPECTED_OF_GROUPS, features_of_groups
from tests.property.features_of_outputs import EXPECTED_OF_OUTPUTS, features_of_outputs
from tests.property.pipelines import RECORD_COLUMNS, has_early_events
from tests.property.scenario import Scenario
from tests.property.sql import is_right, is_using
from tests.reference.beside import Made
from tests.reference.conditions import (
    AnyOf,
    Call,
    Column,
    IsNull,
    Negated,
    aliases_of,
    column_of,
)
from tests.reference.pipeline import DAY, Chain, OraclePipeline, Write
from tests.reference.records import Record

EXPECTED = (
    EXPECTED_OF_OUTPUTS
    | EXPECTED_OF_GROUPS
    | frozenset(
        """
    join:none join:left join:inner join:right join:using join:turned join:self join:composite
    join:expression join:dimension join:event join:several_events join:dimension_drives
    join:same_topic_twice steps:1 steps:2 steps:3 steps:early_events
    emission:immediate emission:smart emission:on_match emission:final require:none require:some
    within:some within:grace within:uneven row_time:latest
    on_expiry:drop on_expiry:emit on_expiry:dead_letter reemit:on lookup:as_of history:some
    history:forever tombstones:named key:id key:other key:absent
    headers:passed headers:made headers:none
    select:coalesce select:upper select:plus select:integer
    where:none where:driving where:side where:or where:not where:null
    unnest:one unnest:several unnest:driving unnest:side unnest:key unnest:where
    time:column time:lateness time:max_future time:idle_timeout time:start time:bounded
    time:advance time:watermark_moves
    on_error:dead_letter on_error:skip on_error:fail on_null:skip on_null:row
    record_column:joined record_column:selected
    type:BIGINT type:INTEGER type:SMALLINT
    record:null record:tombstone record:undecodable record:wrong_type record:no_event_time
    record:null_join_key record:late record:out_of_order record:equal_times record:far_future
    record:several_partitions record:idle_partition record:missing_fields
    outcome:emitted outcome:dead_letter outcome:waiting outcome:filtered outcome:expired
    outcome:skipped outcome:stops outcome:decode outcome:event_time outcome:sql outcome:encode
    outcome:expiry outcome:null_key outcome:tombstones_ignored outcome:side_dead_letters
    outcome:skipped_side outcome:several_rows_of_one_record
    how:plain how:spread how:replay how:crashes
    """.split()
    )
)
"""Every name that must come up."""


def features(scenario: Scenario, how: How) -> frozenset[str]:
    """Name all that a scenario exercises, by its looks and by what the oracle makes of it."""
    return frozenset(
        [
            *_joins(scenario),
            *_rules(scenario.pipeline),
            *features_of_outputs(scenario),
            *features_of_groups(scenario),
            *_times(scenario),
            *_records(scenario),
            *_outcomes(scenario),
            *_hows(how),
        ]
    )


def _joins(scenario: Scenario) -> Iterator[str]:
    pipeline, writing = scenario.pipeline, scenario.writing
    if writing.turned and any(chain.joins for chain in pipeline.chains):
        yield "join:turned"
    for chain in pipeline.chains:
        yield from _chain(pipeline, chain)
        if is_right(chain, writing):
            yield "join:right"
        if any(is_using(chain, join, writing) for join in chain.joins):
            yield "join:using"


def _chain(pipeline: OraclePipeline, chain: Chain) -> Iterator[str]:
    if not chain.joins:
        yield "join:none"
    for join in chain.joins:
        yield "join:inner" if join.inner else "join:left"
        yield "join:dimension" if pipeline.is_dimension(join) else "join:event"
        if join.topic == chain.driving_topic:
            yield "join:self"
        if len(join.on) > 1:
            yield "join:composite"
        if any(isinstance(term, Call) for pair in join.on for term in pair):
            yield "join:expression"
        if any(column_of(term).name in RECORD_COLUMNS for pair in join.on for term in pair):
            yield "record_column:joined"
    if chain.joins and pipeline.topics[chain.driving_topic].dimension:
        yield "join:dimension_drives"
    if len({join.topic for join in chain.joins}) < len(chain.joins):
        yield "join:same_topic_twice"
    for step in chain.steps:
        if sum(not pipeline.is_dimension(join) for join in step.joins) > 1:
            yield "join:several_events"
    if chain.joins:
        yield f"steps:{len(chain.steps)}"
    if has_early_events(pipeline.topics, chain):
        yield "steps:early_events"


def _rules(pipeline: OraclePipeline) -> Iterator[str]:
    yield f"emission:{pipeline.emission}"
    if pipeline.emission == "smart":
        yield f"on_expiry:{pipeline.on_expiry}"
        yield "require:some" if pipeline.require else "require:none"
    if pipeline.reemit:
        yield "reemit:on"
    if pipeline.within is not None:
        yield "within:some"
        if pipeline.within.grace:
            yield "within:grace"
        if pipeline.within.before != pipeline.within.after:
            yield "within:uneven"
    if pipeline.latest:
        yield "row_time:latest"
    for write in pipeline.writes:
        yield from _write(write)
    for topic in pipeline.topics.values():
        yield f"on_error:{topic.on_error}"
        yield f"on_null:{topic.on_null}"
        yield f"type:{topic.columns['n']}"
        if topic.key is not None:
            yield "tombstones:named"
        if topic.lookup == "as_of":
            yield "lookup:as_of"
            yield "history:forever" if topic.history is None else "history:some"


def _write(write: Write) -> Iterator[str]:
    yield "key:absent" if write.key is None else "key:id" if write.key == "id" else "key:other"
    match write.headers:
        case Column():
            yield "headers:passed"
        case Made(pairs=pairs):
            yield "headers:made" if pairs else "headers:none"
        case None:
            pass
    for output in write.select:
        if isinstance(output.term, Call):
            yield f"select:{output.term.function}"
        if column_of(output.term).name in RECORD_COLUMNS:
            yield "record_column:selected"
    if write.unnests:
        yield "unnest:one" if len(write.unnests) == 1 else "unnest:several"
        elements = {each.alias for each in write.unnests}
        if write.key_term is not None and write.key_term.alias in elements:
            yield "unnest:key"
        if any(aliases_of(condition) & elements for condition in write.where):
            yield "unnest:where"
        driving = {each.list.alias == write.chain.driving for each in write.unnests}
        yield from ("unnest:driving" if each else "unnest:side" for each in driving)
    if not write.where:
        yield "where:none"
    for condition in write.where:
        yield "where:driving" if aliases_of(condition) <= {write.chain.driving} else "where:side"
        if isinstance(condition, AnyOf):
            yield "where:or"
        if isinstance(condition, Negated):
            yield "where:not"
        if isinstance(condition, IsNull):
            yield "where:null"


def _times(scenario: Scenario) -> Iterator[str]:
    for topic in scenario.pipeline.topics.values():
        if topic.event_time is not None:
            yield "time:column"
        if topic.lateness:
            yield "time:lateness"
        if topic.max_future != DAY:
            yield "time:max_future"
        if topic.idle_timeout != 30_000:
            yield "time:idle_timeout"
    if scenario.start is not None:
        yield "time:start"
    if scenario.bounded:
        yield "time:bounded"
    if any(isinstance(item, int) for item in scenario.items):
        yield "time:advance"
    marks = zip(*(result.watermarks for result in scenario.interpret().results), strict=True)
    if any(len(set(each)) > 2 for each in marks):
        yield "time:watermark_moves"


def _records(scenario: Scenario) -> Iterator[str]:
    pipeline = scenario.pipeline
    for record in scenario.records:
        topic = pipeline.topics[record.topic]
        if record.raw is not None:
            yield "record:undecodable"
        elif record.value is None:
            yield "record:tombstone" if topic.dimension else "record:null"
        else:
            yield from _values(record, topic.event_time)
    for _, some in _by_partition(scenario.records):
        stamps = [record.ts for record in some]
        if stamps != sorted(stamps):
            yield "record:out_of_order"
    stamps = [record.ts for record in scenario.records]
    if len(set(stamps)) < len(stamps):
        yield "record:equal_times"
    read = {(record.topic, record.partition) for record in scenario.records}
    for name, topic in pipeline.topics.items():
        if topic.partitions > 1:
            yield "record:several_partitions"
        if any((name, partition) not in read for partition in range(topic.partitions)):
            yield "record:idle_partition"


def _values(record: Record, event_time: str | None) -> Iterator[str]:
    value = record.value or {}
    if isinstance(value.get("n"), str):
        yield "record:wrong_type"
    if event_time is not None and value.get(event_time) is None:
        yield "record:no_event_time"
    if value.get("k") is None:
        yield "record:null_join_key"
    if not {"id", "k", "m", "n", "s"} <= set(value):
        yield "record:missing_fields"


def _outcomes(scenario: Scenario) -> Iterator[str]:
    said = scenario.interpret()
    counters = said.counters
    for name in (
        *("emitted", "dead_letter", "waiting", "filtered", "expired", "skipped"),
        *("null_key", "tombstones_ignored", "side_dead_letters", "skipped_side"),
    ):
        if counters.get(name):
            yield f"outcome:{name}"
    if said.stops:
        yield "outcome:stops"
    if counters.get("late"):
        yield "record:late"
    for letter in said.dead_letters:
        yield f"outcome:{letter.phase}"
        if (
            letter.phase == "event_time"
            and scenario.pipeline.topics[letter.topic].event_time is None
        ):
            yield "record:far_future"
    by_topic = Counter(row.topic for row in said.rows)
    if max(by_topic.values(), default=0) > counters.get("emitted", 0):
        yield "outcome:several_rows_of_one_record"


def _hows(how: How) -> Iterator[str]:
    if how == How():
        yield "how:plain"
    if how.spread:
        yield "how:spread"
    if how.replay:
        yield "how:replay"
    if how.crashes is not None:
        yield "how:crashes"


def _by_partition(records: tuple[Record, ...]) -> Iterator[tuple[tuple[str, int], list[Record]]]:
    ordered = sorted(records, key=lambda r: (r.topic, r.partition, r.offset))
    for place, some in groupby(ordered, key=lambda r: (r.topic, r.partition)):
        yield place, list(some)
