"""Strategies for random pipelines that the engine accepts."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from tests.reference.conditions import AnyOf, Column, Compare, Condition, IsNull, Negated
from tests.reference.pipeline import DAY, Join, OraclePipeline, Output, Topic

COLUMNS = {"id": "VARCHAR", "k": "VARCHAR", "m": "VARCHAR", "n": "BIGINT", "s": "VARCHAR"}
"""The columns of every topic; k, m and n are join keys."""
AT = "at"
"""The column that holds the event time of some topics."""
EVENTS = ("orders", "payments", "click-stream")
DIMENSIONS = ("users", "shops.eu")
ALIASES = ("a", "b", "c")
SECONDS = 1000


@st.composite
def pipelines(draw: st.DrawFn, *, early_events_under_smart: bool = False) -> OraclePipeline:
    """A pipeline with one to three joins.

    Args:
        draw: Of hypothesis.
        early_events_under_smart: Also event sides in a step that is not the last, under smart.
    """
    dimension_drives = draw(_rarely())
    driving = DIMENSIONS[0] if dimension_drives else draw(st.sampled_from(EVENTS))
    joins = draw(_joins(driving))
    emission: Any = draw(st.sampled_from(["immediate", "smart", "smart", "final"]))
    topics = draw(_topics({driving, *(join.topic for join in joins)}))
    pipeline = OraclePipeline(
        driving="d",
        driving_topic=driving,
        topics=topics,
        joins=joins,
        select=(Output(name="id", column=Column("d", "id")),),
        key="id",
        emission=emission,
    )
    pipeline = _within_limits(pipeline, early_events_under_smart)
    select = draw(_select(pipeline))
    only_driving = _has_early_events(pipeline)
    pipeline = replace(
        pipeline,
        select=select,
        key=draw(_key(pipeline, select)),
        where=draw(_where(["d"] if only_driving else ["d", *(join.alias for join in joins)])),
    )
    if pipeline.emission == "smart":
        names = [output.name for output in select]
        pipeline = replace(
            pipeline,
            require=tuple(draw(st.lists(st.sampled_from(names), max_size=2, unique=True))),
            on_expiry=draw(st.sampled_from(["drop", "emit", "dead_letter"])),
        )
    own_key = all(o.column.alias == "d" for o in select if o.name == pipeline.key)
    if pipeline.emission != "final" and len(pipeline.steps) == 1 and own_key:
        some = any(pipeline.is_dimension(join) for join in joins)
        pipeline = replace(pipeline, reemit=some and draw(st.booleans()))
    return pipeline


def _rarely() -> st.SearchStrategy[bool]:
    return st.sampled_from([False] * 5 + [True])


@st.composite
def _joins(draw: st.DrawFn, driving: str) -> tuple[Join, ...]:
    made: list[Join] = []
    for alias in ALIASES[: draw(st.integers(1, 3))]:
        topic = draw(st.sampled_from([*DIMENSIONS, *DIMENSIONS, *EVENTS, driving]))
        if made and draw(st.booleans()):
            lefts = list(made[0].key)
        else:
            earlier = ["d", "d", *(join.alias for join in made)]
            lefts = [
                Column(draw(st.sampled_from(earlier)), draw(st.sampled_from(["k", "k", "m", "n"])))
            ]
            if draw(_rarely()):
                lefts.append(Column("d", "m" if lefts[0].name == "k" else "k"))
        on = tuple((left, _own(draw, left.name)) for left in lefts)
        if len({right for _, right in on}) < len(on):
            on = tuple((left, left.name) for left in lefts)
        made.append(Join(alias=alias, topic=topic, on=on, inner=draw(_rarely())))
    return tuple(made)


def _own(draw: st.DrawFn, name: str) -> str:
    return name if name == "n" else draw(st.sampled_from([name, name, "k", "m"]))


@st.composite
def _topics(draw: st.DrawFn, names: set[str]) -> dict[str, Topic]:
    default = draw(st.sampled_from([10, 20, 40])) * SECONDS
    topics: dict[str, Topic] = {}
    for name in sorted(names):
        timed = draw(_rarely())
        as_of = name in DIMENSIONS and draw(_rarely())
        override = name in EVENTS and draw(st.booleans())
        topics[name] = Topic(
            name=name,
            columns={**COLUMNS, AT: "BIGINT"} if timed else COLUMNS,
            dimension=name in DIMENSIONS,
            ttl=draw(st.sampled_from([5, 15, 60])) * SECONDS if override else default,
            event_time=AT if timed else None,
            lateness=draw(st.sampled_from([0, 0, 0, 5])) * SECONDS,
            idle_timeout=draw(st.sampled_from([30, 30, 5])) * SECONDS,
            max_future=30 * SECONDS if draw(_rarely()) else DAY,
            lookup="as_of" if as_of else "current",
            history=draw(st.sampled_from([5, 10, 40])) * SECONDS if as_of else None,
        )
    return topics


def _has_early_events(pipeline: OraclePipeline) -> bool:
    return any(
        not pipeline.is_dimension(join) for step in pipeline.steps[:-1] for join in step.joins
    )


def _within_limits(pipeline: OraclePipeline, early_events_under_smart: bool) -> OraclePipeline:
    """Turn what the engine refuses into something that it accepts."""
    if _has_early_events(pipeline):
        kept = early_events_under_smart and pipeline.emission == "smart"
        return replace(
            pipeline,
            emission="smart" if kept else "immediate",
            joins=tuple(replace(join, inner=False) for join in pipeline.joins),
        )
    some_events = any(not pipeline.is_dimension(join) for join in pipeline.joins)
    if pipeline.emission == "final" and some_events and len(pipeline.steps) > 1:
        return replace(pipeline, emission="immediate")
    return pipeline


@st.composite
def _select(draw: st.DrawFn, pipeline: OraclePipeline) -> tuple[Output, ...]:
    outputs = [Output(name="id", column=Column("d", "id"))]
    for alias in ["d", *(join.alias for join in pipeline.joins)]:
        names = draw(st.lists(st.sampled_from(["k", "m", "n", "s"]), max_size=2, unique=True))
        for name in names or ["s"]:
            kind: Any = draw(st.sampled_from(["plain"] * 6 + ["coalesce", "upper"]))
            if name == "n" and kind == "upper":
                kind = "plain"
            literal = (7 if name == "n" else "none") if kind == "coalesce" else None
            column = Column(alias, name)
            outputs.append(
                Output(name=f"{alias}_{name}", column=column, function=kind, literal=literal)
            )
    return tuple(outputs)


@st.composite
def _key(draw: st.DrawFn, pipeline: OraclePipeline, select: Sequence[Output]) -> str:
    dimensions = all(pipeline.is_dimension(join) for join in pipeline.joins)
    if draw(_rarely()):
        allowed = [o.name for o in select if dimensions or o.column.alias == "d"]
        return draw(st.sampled_from(allowed))
    return "id"


@st.composite
def _where(draw: st.DrawFn, aliases: list[str]) -> tuple[Condition, ...]:
    return tuple(draw(st.lists(_condition(aliases), max_size=draw(st.sampled_from([0, 0, 1, 2])))))


@st.composite
def _condition(draw: st.DrawFn, aliases: list[str]) -> Condition:
    kind = draw(st.sampled_from(["compare"] * 4 + ["any", "not"]))
    if kind == "any":
        return AnyOf((draw(_simple(aliases)), draw(_simple(aliases))))
    if kind == "not":
        return Negated(draw(_simple(aliases)))
    return draw(_simple(aliases))


@st.composite
def _simple(draw: st.DrawFn, aliases: list[str]) -> Condition:
    alias = draw(st.sampled_from(aliases))
    if draw(_rarely()):
        return IsNull(Column(alias, draw(st.sampled_from(["k", "n", "s"]))), draw(st.booleans()))
    ops: list[Any] = ["<>", "<>", ">=", "<", "=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]
    op = draw(st.sampled_from(ops))
    if draw(st.booleans()):
        return Compare(Column(alias, "n"), op, draw(st.integers(0, 3)))
    return Compare(Column(alias, "s"), op, draw(st.sampled_from(["x", "y", "zz"])))
