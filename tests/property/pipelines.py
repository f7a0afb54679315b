"""Random pipelines that the engine accepts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tests.property.dice import Dice
from tests.property.joins import DIMENSIONS, another_chain, random_chain
from tests.property.scenario import Writing
from tests.property.sql import of_relation
from tests.property.unions import asked_of_all, with_types
from tests.reference.conditions import (
    AnyOf,
    Call,
    Column,
    Compare,
    Condition,
    IsNull,
    Negated,
    Term,
    column_of,
)
from tests.reference.pipeline import DAY, Chain, OraclePipeline, Output, Topic, Within, Write

AT = "at"
"""The column that holds the event time of some topics."""
RECORD_COLUMNS = ("_key", "_topic", "_partition", "_offset")
NUMBERS = ("n", "_partition", "_offset")
SECONDS = 1000

TOPICS = ("out", "second-out", "third.out")
_OUTPUTS = [1, 1, 1, 1, 2, 3]
_CHAINS = [1, 1, 2]
"""Of the second chains some are not what the engine takes."""


def random_pipeline(dice: Dice) -> OraclePipeline:
    """Choose a pipeline: one chain or two, with up to three joins each."""
    first = random_chain(dice)
    second = another_chain(dice, first) if dice.pick(_CHAINS) == 2 else None
    chains = [first] if second is None else [first, second]
    pipeline = OraclePipeline(
        topics=_topics(dice, sorted(frozenset[str]().union(*(c.topics for c in chains)))),
        writes=(),
        emission=dice.pick(_emissions(chains)),
    )
    pipeline = _within_limits(pipeline, chains)
    pipeline = with_types(replace(pipeline, writes=_writes(dice, pipeline.topics, chains)))
    if pipeline.emission == "smart":
        every = [output for write in pipeline.writes for output in write.select]
        failing = {output.name for output in every if _may_fail(output.term)}
        names = sorted({output.name for output in every} - failing)
        pipeline = replace(
            pipeline,
            require=tuple(dice.some(names, 2)),
            on_expiry=dice.pick(["drop", "emit", "dead_letter"]),
        )
    if pipeline.emission == "on_match":
        pipeline = replace(pipeline, within=_within(dice), latest=dice.one_in(3))
    key = pipeline.writes[0].key_term
    own_key = len(pipeline.writes) == 1 and (key is None or key.alias == "d")
    some = any(pipeline.is_dimension(join) for join in first.joins)
    once = pipeline.emission in ("on_match", "final")
    if some and not once and len(first.steps) == 1 and own_key:
        pipeline = replace(pipeline, reemit=dice.one_in(2))
    return pipeline


def random_writing(dice: Dice, pipeline: OraclePipeline) -> Writing:
    """Choose how the queries are written down."""
    several = len(pipeline.outputs) < len(pipeline.writes)
    within = pipeline.within or Within()
    return Writing(
        turned=dice.one_in(2),
        right=dice.one_in(4) and within.before == within.after,
        using=dice.one_in(3),
        relation=dice.one_in(2) if len(pipeline.writes) > 1 else dice.one_in(12),
        united=several and dice.one_in(2),
    )


def _emissions(chains: Sequence[Chain]) -> list[Any]:
    if all(chain.joins for chain in chains):
        return ["immediate", "smart", "smart", "on_match", "on_match", "final"]
    return ["immediate", "smart", "on_match"]


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


def has_early_events(topics: Mapping[str, Topic], chain: Chain) -> bool:
    """Tell whether a step before the last one has an event side."""
    return any(not topics[join.topic].dimension for s in chain.steps[:-1] for join in s.joins)


def _within_limits(pipeline: OraclePipeline, chains: Sequence[Chain]) -> OraclePipeline:
    """Turn what the engine refuses into something that it accepts."""
    early = any(len(chain.steps) > 1 and not _looks_up(pipeline.topics, chain) for chain in chains)
    if pipeline.emission == "final" and early:
        return replace(pipeline, emission="immediate")
    if pipeline.emission != "on_match":
        return pipeline
    if all(_looks_up(pipeline.topics, chain) for chain in chains):
        return replace(pipeline, emission="immediate")
    if any(parts_unmatched(pipeline.topics, chain) for chain in chains):
        return replace(pipeline, emission="immediate")
    return pipeline


def parts_unmatched(topics: Mapping[str, Topic], chain: Chain) -> bool:
    """Tell whether events are joined over several keys, and one of them need not match."""
    events = [join for join in chain.joins if not topics[join.topic].dimension]
    return len({join.key for join in events}) > 1 and not all(join.inner for join in events)


def _within(dice: Dice) -> Within | None:
    """Choose how far events may be apart that match."""
    if dice.one_in(3):
        return None
    apart = dice.pick([None, 0, 5, 20])
    apart = None if apart is None else apart * SECONDS
    other = apart if dice.one_in(2) else dice.pick([3, 30]) * SECONDS
    return Within(before=apart, after=other, grace=dice.pick([0, 0, 5, 20]) * SECONDS)


def _looks_up(topics: Mapping[str, Topic], chain: Chain) -> bool:
    """Tell whether all sides are dimensions."""
    return all(topics[join.topic].dimension for join in chain.joins)


def _writes(dice: Dice, topics: Mapping[str, Topic], chains: Sequence[Chain]) -> tuple[Write, ...]:
    """Choose outputs: those of the first chain, then what the second one writes, and a union."""
    first, *others = chains
    writes = _of_first(dice, topics, first, dice.pick([1, 1, 1, 2] if others else _OUTPUTS))
    if others and not dice.one_in(3):
        writes.append(_write(dice, topics, others[0], TOPICS[len(writes)], ()))
        unites = dice.one_in(4)
    else:
        unites = bool(others) or dice.one_in(7)
    if not unites:
        return tuple(writes)
    chosen = dice.pick(writes)
    missing = [chain for chain in others if chain not in {write.chain for write in writes}]
    return tuple(_with_union(dice, topics, writes, chosen, missing or chains))


def _with_union(
    dice: Dice,
    topics: Mapping[str, Topic],
    writes: Sequence[Write],
    chosen: Write,
    chains: Sequence[Chain],
) -> list[Write]:
    """Make a union of an output."""
    count = dice.pick([1, 1, 2])
    branches = [chosen, *(_like(dice, topics, chosen, dice.pick(chains)) for _ in range(count))]
    if dice.one_in(2):
        branches.reverse()
    branches = [replace(each, branch=place) for place, each in enumerate(branches)]
    if dice.one_in(3):
        branches = asked_of_all(dice, branches)
    return [each for write in writes for each in (branches if write is chosen else [write])]


def _of_first(dice: Dice, topics: Mapping[str, Topic], chain: Chain, count: int) -> list[Write]:
    """Choose outputs of one chain; with several, one of them may be all of what others read."""
    names = TOPICS[:count]
    shared = _where(dice, chain) if len(names) > 1 else ()
    writes = [_write(dice, topics, chain, name, shared) for name in names]
    if len(writes) > 1 and dice.one_in(3):
        place = dice.number(0, len(writes) - 1)
        writes[place] = replace(writes[place], where=shared)
        below = of_relation(OraclePipeline(topics=topics, writes=tuple(writes)), chain)
        key = _key(dice, topics, chain, below.select, "d_id")
        writes[place] = replace(writes[place], select=below.select, key=key)
    return writes


def _write(
    dice: Dice,
    topics: Mapping[str, Topic],
    chain: Chain,
    name: str,
    shared: tuple[Condition, ...],
) -> Write:
    select = _select(dice, chain)
    own = tuple(c for c in _where(dice, chain) if c not in shared)
    key = _key(dice, topics, chain, select, "id")
    return Write(topic=name, chain=chain, select=select, key=key, where=shared + own)


def _like(dice: Dice, topics: Mapping[str, Topic], like: Write, chain: Chain) -> Write:
    """Choose another branch: columns of the same names, of whatever types."""
    select: list[Output] = []
    for output in like.select:
        number = column_of(output.term).name in NUMBERS
        names = NUMBERS if number != dice.one_in(8) else ("k", "m", "s", "id", "_key")
        may_be_key = ["d"] if not _looks_up(topics, chain) else chain.sides
        column = Column(
            dice.pick(may_be_key if output.name == like.key else chain.sides), dice.pick(names)
        )
        term = Column("d", "id") if output.name == "id" else _output(dice, column)
        key = output.name == like.key
        select.append(replace(output, term=column if key and _may_fail(term) else term))
    where = _where(dice, chain)
    if chain == like.chain and dice.one_in(2):
        where = tuple(dict.fromkeys((*like.where, *where)))
    return replace(like, chain=chain, select=tuple(select), where=where)


def _select(dice: Dice, chain: Chain) -> tuple[Output, ...]:
    outputs = [Output(name="id", term=Column("d", "id"))]
    for alias in chain.sides:
        names = dice.some(["k", "m", "n", "s", dice.pick(RECORD_COLUMNS)], 2)
        for name in names or ["s"]:
            outputs.append(Output(name=f"{alias}_{name}", term=_output(dice, Column(alias, name))))
    return tuple(outputs)


def _output(dice: Dice, column: Column) -> Term:
    kind = dice.pick(["plain"] * 7 + ["coalesce", "other"])
    number = column.name in NUMBERS
    if kind == "coalesce":
        return Call("coalesce", column, 7 if number else "none")
    if kind == "other" and number:
        return Call("plus", column, 1)
    if kind == "other":
        return Call("integer" if column.name == "s" else "upper", column)
    return column


def _may_fail(term: Term) -> bool:
    return isinstance(term, Call) and term.function == "integer"


def _key(
    dice: Dice, topics: Mapping[str, Topic], chain: Chain, select: Sequence[Output], usual: str
) -> str | None:
    if dice.one_in(8):
        return None
    if dice.one_in(5):
        sides = chain.sides if _looks_up(topics, chain) else ("d",)
        return dice.pick(
            [o.name for o in select if o.term.alias in sides and not _may_fail(o.term)]
        )
    return usual


def _where(dice: Dice, chain: Chain) -> tuple[Condition, ...]:
    aliases = ["d", *chain.sides]
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
