"""Random pipelines that the engine accepts."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.property.dice import Dice
from tests.property.render import of_relation
from tests.property.scenario import Writing
from tests.reference.conditions import (
    AnyOf,
    Call,
    Column,
    Compare,
    Condition,
    IsNull,
    Negated,
    Term,
)
from tests.reference.pipeline import DAY, Join, OraclePipeline, Output, Topic, Write

AT = "at"
"""The column that holds the event time of some topics."""
EVENTS = ("orders", "payments", "click-stream")
DIMENSIONS = ("users", "shops.eu")
RECORD_COLUMNS = ("_key", "_topic", "_partition", "_offset")
SECONDS = 1000

TOPICS = ("out", "second-out", "third.out")
_OUTPUTS = [1, 1, 1, 1, 2, 3]
_JOINS = [0, 1, 1, 1, 1, 2, 2, 2, 3, 3]


def random_pipeline(dice: Dice) -> OraclePipeline:
    """Choose a pipeline with up to three joins."""
    driving = DIMENSIONS[0] if dice.one_in(8) else dice.pick(EVENTS)
    joins = _joins(dice, driving)
    pipeline = OraclePipeline(
        driving="d",
        driving_topic=driving,
        topics=_topics(dice, sorted({driving, *(join.topic for join in joins)})),
        joins=joins,
        writes=(),
        emission=dice.pick(_emissions(joins)),
    )
    pipeline = _within_limits(pipeline)
    pipeline = replace(pipeline, writes=_writes(dice, pipeline))
    if pipeline.emission == "smart":
        every = [output for write in pipeline.writes for output in write.select]
        failing = {output.name for output in every if _may_fail(output.term)}
        names = sorted({output.name for output in every} - failing)
        pipeline = replace(
            pipeline,
            require=tuple(dice.some(names, 2)),
            on_expiry=dice.pick(["drop", "emit", "dead_letter"]),
        )
    key = pipeline.writes[0].key_term
    own_key = len(pipeline.writes) == 1 and (key is None or key.alias == "d")
    some = any(pipeline.is_dimension(join) for join in joins)
    if some and pipeline.emission != "final" and len(pipeline.steps) == 1 and own_key:
        pipeline = replace(pipeline, reemit=dice.one_in(2))
    return pipeline


def random_writing(dice: Dice, pipeline: OraclePipeline) -> Writing:
    """Choose how the queries are written down."""
    wanted = {join.alias for join in pipeline.joins if dice.one_in(3)}
    right = len(pipeline.joins) == 1 and not pipeline.joins[0].inner and dice.one_in(4)
    return Writing(
        turned=dice.one_in(2),
        right=right,
        using=using_of(pipeline.joins) & wanted,
        relation=dice.one_in(2) if len(pipeline.writes) > 1 else dice.one_in(12),
    )


def using_of(joins: Sequence[Join]) -> frozenset[str]:
    """Return the joins that may be written with USING: a later one would be ambiguous."""
    return frozenset(join.alias for join in joins[:1] if _may_use_using(join))


def _may_use_using(join: Join) -> bool:
    """Tell whether a join is over columns of one name, the left ones of the driving side."""
    return all(
        isinstance(left, Column)
        and isinstance(right, Column)
        and left.alias == "d"
        and left.name == right.name
        for left, right in join.on
    )


def _joins(dice: Dice, driving: str) -> tuple[Join, ...]:
    made: list[Join] = []
    for alias in ("a", "b", "c")[: dice.pick(_JOINS)]:
        topic = dice.pick([*DIMENSIONS, *DIMENSIONS, *EVENTS, driving])
        if made and dice.one_in(2):
            lefts: list[Term] = list(made[0].key)
        else:
            earlier = ["d", "d", *(join.alias for join in made)]
            name = "_key" if dice.one_in(6) else dice.pick("kkmn")
            lefts = [_expression(dice, Column(dice.pick(earlier), name))]
            if dice.one_in(5):
                lefts.append(Column("d", "m" if _name(lefts[0]) == "k" else "k"))
        on = tuple((left, _own(dice, alias, left)) for left in lefts)
        if len({right for _, right in on}) < len(on):
            on = tuple((left, Column(alias, _name(left))) for left in lefts)
        made.append(Join(alias=alias, topic=topic, on=on, inner=dice.one_in(5)))
    return tuple(made)


def _name(term: Term) -> str:
    return term.column.name if isinstance(term, Call) else term.name


def _own(dice: Dice, alias: str, left: Term) -> Term:
    name = _name(left)
    if name == "n":
        return _expression(dice, Column(alias, name))
    return _expression(dice, Column(alias, dice.pick([name, name, "k", "m", "_key"])))


def _expression(dice: Dice, column: Column) -> Term:
    if not dice.one_in(9):
        return column
    if column.name == "n":
        return dice.pick([Call("plus", column, 1), Call("coalesce", column, 2)])
    return dice.pick([Call("upper", column), Call("coalesce", column, "u1")])


def _emissions(joins: Sequence[Join]) -> list[Any]:
    return ["immediate", "smart", "smart", "final"] if joins else ["immediate", "smart"]


def _topics(dice: Dice, names: Sequence[str]) -> dict[str, Topic]:
    default = dice.pick([10, 20, 40]) * SECONDS
    number = dice.pick(["BIGINT", "BIGINT", "INTEGER", "SMALLINT"])
    columns = {"id": "VARCHAR", "k": "VARCHAR", "m": "VARCHAR", "n": number, "s": "VARCHAR"}
    errors: list[Any] = ["dead_letter"] * 8 + ["skip", "skip", "fail"]
    topics: dict[str, Topic] = {}
    for name in names:
        dimension, timed = name in DIMENSIONS, dice.one_in(5)
        as_of = dimension and dice.one_in(4)
        topics[name] = Topic(
            name=name,
            columns={**columns, AT: "BIGINT"} if timed else columns,
            dimension=dimension,
            ttl=dice.pick([5, 15, 60]) * SECONDS if not dimension and dice.one_in(2) else default,
            event_time=AT if timed else None,
            lateness=dice.pick([0, 0, 0, 5]) * SECONDS,
            idle_timeout=dice.pick([30, 30, 5]) * SECONDS,
            max_future=30 * SECONDS if dice.one_in(6) else DAY,
            lookup="as_of" if as_of else "current",
            history=dice.pick([5, 10, 40, None]) if as_of else None,
            key=dice.pick("kmn") if dimension and dice.one_in(5) else None,
            on_error=dice.pick(errors),
            on_null="row" if not dimension and dice.one_in(4) else "skip",
        )
        if history := topics[name].history:
            topics[name] = replace(topics[name], history=history * SECONDS)
    return topics


def has_early_events(pipeline: OraclePipeline) -> bool:
    """Tell whether a step before the last one has an event side."""
    return any(
        not pipeline.is_dimension(join) for step in pipeline.steps[:-1] for join in step.joins
    )


def _within_limits(pipeline: OraclePipeline) -> OraclePipeline:
    """Turn what the engine refuses into something that it accepts."""
    some_events = any(not pipeline.is_dimension(join) for join in pipeline.joins)
    if pipeline.emission == "final" and some_events and len(pipeline.steps) > 1:
        return replace(pipeline, emission="immediate")
    return pipeline


def _writes(dice: Dice, pipeline: OraclePipeline) -> tuple[Write, ...]:
    """Choose outputs; with several, one of them may be all of what the others read."""
    topics = TOPICS[: dice.pick(_OUTPUTS)]
    shared = _where(dice, pipeline) if len(topics) > 1 else ()
    writes = [_write(dice, pipeline, topic, shared) for topic in topics]
    if len(writes) > 1 and dice.one_in(3):
        place = dice.number(0, len(writes) - 1)
        writes[place] = replace(writes[place], where=shared)
        select = of_relation(replace(pipeline, writes=tuple(writes))).select
        key = _key(dice, pipeline, select, "d_id")
        writes[place] = replace(writes[place], select=select, key=key)
    return tuple(writes)


def _write(
    dice: Dice, pipeline: OraclePipeline, topic: str, shared: tuple[Condition, ...]
) -> Write:
    select = _select(dice, pipeline)
    own = tuple(c for c in _where(dice, pipeline) if c not in shared)
    key = _key(dice, pipeline, select, "id")
    return Write(topic=topic, select=select, key=key, where=shared + own)


def _select(dice: Dice, pipeline: OraclePipeline) -> tuple[Output, ...]:
    outputs = [Output(name="id", term=Column("d", "id"))]
    for alias in ["d", *(join.alias for join in pipeline.joins)]:
        names = dice.some(["k", "m", "n", "s", dice.pick(RECORD_COLUMNS)], 2)
        for name in names or ["s"]:
            outputs.append(Output(name=f"{alias}_{name}", term=_output(dice, Column(alias, name))))
    return tuple(outputs)


def _output(dice: Dice, column: Column) -> Term:
    kind = dice.pick(["plain"] * 7 + ["coalesce", "other"])
    number = column.name in ("n", "_partition", "_offset")
    if kind == "coalesce":
        return Call("coalesce", column, 7 if number else "none")
    if kind == "other" and number:
        return Call("plus", column, 1)
    if kind == "other":
        return Call("integer" if column.name == "s" else "upper", column)
    return column


def _may_fail(term: Term) -> bool:
    return isinstance(term, Call) and term.function == "integer"


def _key(dice: Dice, pipeline: OraclePipeline, select: Sequence[Output], usual: str) -> str | None:
    if dice.one_in(8):
        return None
    if dice.one_in(5):
        dimensions = all(pipeline.is_dimension(join) for join in pipeline.joins)
        return dice.pick(
            [
                o.name
                for o in select
                if (dimensions or o.term.alias == "d") and not _may_fail(o.term)
            ]
        )
    return usual


def _where(dice: Dice, pipeline: OraclePipeline) -> tuple[Condition, ...]:
    aliases = ["d", "d", *(join.alias for join in pipeline.joins)]
    return tuple(_condition(dice, aliases) for _ in range(dice.pick([0, 0, 0, 1, 1, 2])))


def _condition(dice: Dice, aliases: Sequence[str]) -> Condition:
    kind = dice.pick(["compare"] * 4 + ["any", "not"])
    if kind == "any":
        return AnyOf((_simple(dice, aliases), _simple(dice, aliases)))
    return Negated(_simple(dice, aliases)) if kind == "not" else _simple(dice, aliases)


def _simple(dice: Dice, aliases: Sequence[str]) -> Condition:
    alias = dice.pick(aliases)
    if dice.one_in(5):
        return IsNull(Column(alias, dice.pick("kns")), dice.one_in(2))
    ops: list[Any] = ["<>", "<>", ">=", "<", "=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]
    op = dice.pick(ops)
    if dice.one_in(2):
        return Compare(Column(alias, "n"), op, dice.number(0, 3))
    return Compare(Column(alias, "s"), op, dice.pick(["x", "y", "zz"]))
