"""Strategies for random runs: records, and cuts into batches."""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from tests.property.pipelines import AT, SECONDS, pipelines
from tests.property.scenario import Item, Scenario
from tests.reference.pipeline import OraclePipeline, Topic
from tests.reference.records import Record

T0 = 1_767_225_600_000
"""2026-01-01T00:00:00Z."""
_KEYS = ["u1"] * 7 + ["u2"] * 3 + ["u3", None]

_IDS = ["i1", "i1", "i2", "i2", "i3", "i3", "i4", "i4", "i5", "i6", None]


@dataclass(frozen=True)
class Draft:
    """A record without its offset; `at` is in s after T0."""

    topic: str
    partition: int
    at: int
    key: str | None
    value: dict[str, Any] | None
    raw: bytes | None


@st.composite
def scenarios(draw: st.DrawFn, *, early_events_under_smart: bool = False) -> Scenario:
    """A pipeline with up to some forty records in up to eight batches."""
    pipeline = draw(pipelines(early_events_under_smart=early_events_under_smart))
    names = sorted(pipeline.topics)
    wide = draw(st.sets(st.sampled_from(names)))
    offsets: Counter[tuple[str, int]] = Counter()
    items: list[Item] = []
    now = 0
    for _ in range(draw(st.integers(2, 8))):
        if items and draw(st.sampled_from([False] * 3 + [True])):
            step = draw(st.sampled_from([5, 20, 1, 60]))
            items.append(step * SECONDS)
            now += step
            continue
        drafts = draw(st.lists(_drafts(pipeline, now, wide), min_size=2, max_size=7))
        items.append(tuple(_numbered(draft, offsets) for draft in drafts))
        now += draw(st.sampled_from([3, 0, 12, 35]))
    counts = {name: 1 for name in names}
    for topic, partition in offsets:
        counts[topic] = max(counts[topic], partition + 1)
    topics = {name: replace(t, partitions=counts[name]) for name, t in pipeline.topics.items()}
    return Scenario(
        pipeline=replace(pipeline, topics=topics),
        items=tuple(items),
        start=draw(st.sampled_from([None, None, T0 + 10 * SECONDS])),
        bounded=draw(st.sampled_from([False] * 4 + [True])),
    )


def default_ttl(scenario: Scenario) -> int:
    """A default TTL under which the TTLs of the pipeline can be written down."""
    dimensions = [t.ttl for t in scenario.pipeline.topics.values() if t.dimension]
    return dimensions[0] if dimensions else 20 * SECONDS


@st.composite
def _drafts(draw: st.DrawFn, pipeline: OraclePipeline, now: int, wide: set[str]) -> Draft:
    weights = [pipeline.driving_topic] * 2 + [join.topic for join in pipeline.joins]
    topic = pipeline.topics[draw(st.sampled_from(weights))]
    kind = draw(st.sampled_from(["value"] * 20 + ["null", "null", "raw"]))
    at = max(0, now + draw(st.sampled_from([0, 0, 1, 1, 2, 3, 5, 8, 12, -1, -4, -10, -30])))
    return Draft(
        topic=topic.name,
        partition=draw(st.integers(0, 1)) if topic.name in wide else 0,
        at=at,
        key=draw(st.sampled_from(["u1", "u1", "u2", "1", "2", None])),
        value=draw(_values(topic, at)) if kind == "value" else None,
        raw=b'{"id": ' if kind == "raw" else None,
    )


@st.composite
def _values(draw: st.DrawFn, topic: Topic, at: int) -> dict[str, Any]:
    value: dict[str, Any] = {
        "id": draw(st.sampled_from(_IDS)),
        "k": draw(st.sampled_from(_KEYS)),
        "m": draw(st.sampled_from(_KEYS)),
        "n": draw(st.sampled_from([1, 1, 1, 2, 3, None])),
        "s": draw(st.sampled_from(["x", "x", "y", "zz", None])),
    }
    if topic.event_time is not None:
        moved = draw(st.sampled_from([0, 0, 0, 1, -2, -20, 33, None]))
        value[AT] = None if moved is None else T0 + (at + moved) * SECONDS
    if draw(st.sampled_from([False] * 4 + [True])):
        return {name: each for name, each in value.items() if each is not None}
    return value


def _numbered(draft: Draft, offsets: Counter[tuple[str, int]]) -> Record:
    place = (draft.topic, draft.partition)
    offset = offsets[place]
    offsets[place] += 1
    return Record(
        topic=draft.topic,
        partition=draft.partition,
        offset=offset,
        ts=T0 + draft.at * SECONDS,
        key=draft.key,
        value=draft.value,
        raw=draft.raw,
    )
