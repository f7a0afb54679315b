"""Outputs of a random scenario that are grouped."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.property.dice import Dice
from tests.property.pipelines import parts_unmatched
from tests.property.scenario import Scenario
from tests.reference.conditions import Column, Compare, Condition
from tests.reference.delays import with_delays
from tests.reference.grouping import START, GroupCall, Grouping, Hop, Session
from tests.reference.pipeline import OraclePipeline, Output, Write

SECONDS = 1000
_OF_NUMBERS = ["count", "count_distinct", "sum", "sum", "min", "max", "avg", "median"]
_OF_TEXTS = ["count", "count_distinct", "min", "max", "list", "first", "last"]
_WHOLE = {"count_star", "count", "count_distinct", "sum"}
"""Functions whose results are whole numbers."""


def with_groups(dice: Dice, scenario: Scenario, always: bool) -> Scenario:
    """Let outputs be grouped, where they can be: of a third of the scenarios, or always."""
    pipeline = scenario.pipeline
    alone = len(pipeline.writes) == 1 and pipeline.emission == "immediate"
    repeats = alone and _repeats(pipeline, pipeline.writes[0])
    may_match = repeats and not parts_unmatched(pipeline.topics, pipeline.writes[0].chain)
    able = [
        branches[0].topic
        for branches in pipeline.outputs
        if len(branches) == 1 and (may_match or not _repeats(pipeline, branches[0]))
    ]
    if not able or not (always or dice.one_in(4)):
        return scenario
    first = dice.pick(able)
    chosen = {topic for topic in able if topic == first or dice.one_in(2)}
    implied = pipeline.emission == "immediate" and (repeats or dice.one_in(2))
    joined = any(write.chain.joins for write in pipeline.writes if write.topic in chosen)
    like = Grouping(
        keys=(),
        window=None,
        calls=(),
        select=(),
        grace=dice.pick([0, 0, 3, 10]) * SECONDS,
        ttl=None if joined or dice.one_in(2) else dice.pick([5, 20]) * SECONDS,
    )
    final = pipeline.emission != "immediate" or implied
    writes = tuple(
        _grouped(dice, write, like, pipeline.emission == "final", final)
        if write.topic in chosen
        else write
        for write in pipeline.writes
    )
    shown = {each.name for write in writes if not write.groups for each in write.select}
    require = tuple(name for name in pipeline.require if name in shown)
    pipeline = replace(pipeline, writes=writes, require=require, reemit=False, implied=implied)
    if _may_end(pipeline) and dice.one_in(2):
        writes = tuple(_ended(dice, write) for write in writes)
        pipeline = replace(pipeline, writes=writes, emission="final", implied=False)
    writing = replace(scenario.writing, implied=pipeline.implied)
    closes = any(group.final or group.ended for write in writes for group in write.groups)
    return replace(
        scenario,
        pipeline=with_delays(pipeline),
        writing=writing,
        bounded=scenario.bounded or (closes and dice.one_in(2)),
    )


def _may_end(pipeline: OraclePipeline) -> bool:
    """Tell whether rows of windows may leave when these end, and again with late rows."""
    grouped = [write.groups for write in pipeline.writes if write.groups]
    closing = [groups[-1] for groups in grouped if not groups[-1].distinct and groups[-1].window]
    every = all(each.window or each.distinct for groups in grouped for each in groups)
    said = pipeline.emission == "final"
    alone = pipeline.implied and not any(w.chain.joins or not w.groups for w in pipeline.writes)
    return bool(closing) and closing[0].grace > 0 and every and (said or alone)


def _ended(dice: Dice, write: Write) -> Write:
    if not write.groups or write.groups[-1].distinct:
        return write
    last = replace(write.groups[-1], final=False, ended=True, each=dice.one_in(2))
    return replace(write, groups=(*write.groups[:-1], last))


def _repeats(pipeline: OraclePipeline, write: Write) -> bool:
    """Tell whether rows leave more than once, which cannot be grouped."""
    optional = (join for join in write.chain.joins if not join.inner)
    if pipeline.emission in ("on_match", "final"):
        return False
    return any(not pipeline.is_dimension(join) for join in optional)


def _grouped(dice: Dice, write: Write, like: Grouping, windowed: bool, final: bool) -> Write:
    aliases = ["d", *write.chain.sides]
    elements = [Column(each.alias, each.name) for each in write.unnests]
    entry: list[Output] = []
    for column in dice.some([Column(dice.pick(aliases), name) for name in "kns"] + elements, 2):
        entry.append(Output(name=f"g{len(entry)}", term=column))
    keys = tuple(each.name for each in entry)
    if keys and not windowed and dice.one_in(4):
        return _distinct(dice, write, entry, like, final)
    calls = [_call(dice, aliases, entry, n) for n in range(dice.pick([1, 1, 2, 3]))]
    window = _window(dice, 1) if windowed or dice.one_in(2) else None
    first = replace(
        like,
        keys=keys,
        window=window,
        calls=tuple(calls),
        select=_selected(dice, keys, calls, window),
        having=_having(dice, calls) if dice.one_in(3) else (),
        final=final and window is not None,
        each=not (final and window is not None) and dice.one_in(2),
    )
    groups = (first,)
    if first.final and dice.one_in(3):
        lists = {call.name for call in calls if call.function == "list"}
        shown = tuple(name for name, of in first.select if of not in lists)
        more = _behind(dice, first, like) if dice.one_in(2) else _equal_once(shown, like)
        groups = (first, more)
    return replace(write, key=None, select=tuple(entry), groups=groups)


def _distinct(dice: Dice, write: Write, entry: list[Output], like: Grouping, final: bool) -> Write:
    """Drop equal rows, and group some of the others in windows."""
    first = _equal_once(tuple(each.name for each in entry), like)
    select = first.select if dice.one_in(2) else tuple((f"of_{n}", n) for n, _ in first.select)
    groups = (replace(first, select=select),)
    if final and dice.one_in(2):
        groups = (*groups, _behind(dice, groups[0], like))
    return replace(write, key=None, select=tuple(entry), groups=groups)


def _equal_once(names: tuple[str, ...], like: Grouping) -> Grouping:
    select = tuple((name, name) for name in names)
    return replace(like, keys=names, select=select, final=True, distinct=True)


def _behind(dice: Dice, first: Grouping, like: Grouping) -> Grouping:
    """Group windows once more, in longer ones."""
    shown = {of: name for name, of in first.select}
    keys = tuple(dice.some([shown[key] for key in first.keys], 1))
    numbers = [shown[call.name] for call in first.calls if call.function in _WHOLE]
    calls = [GroupCall(name="c0", function="count_star")]
    calls += [GroupCall(name=f"c{n}", function="sum", argument=x) for n, x in enumerate(numbers, 1)]
    window = _window(dice, 3)
    select = _selected(dice, keys, calls, window)
    return replace(like, keys=keys, window=window, calls=tuple(calls), select=select, final=True)


def _window(dice: Dice, times: int) -> Hop | Session:
    kind = dice.pick(["tumble", "tumble", "hop", "session"])
    length = dice.pick([2, 5, 10, 20]) * times * SECONDS
    match kind:
        case "session":
            return Session(gap=length)
        case "hop":
            return Hop(size=length * dice.pick([2, 3]), advance=length)
        case _:
            return Hop(size=length, advance=length)


def _call(dice: Dice, aliases: Sequence[str], entry: list[Output], number: int) -> GroupCall:
    name = f"c{number}"
    where: tuple[Condition, ...] = ()
    if dice.one_in(5):
        asked = _argument(entry, Column(dice.pick(aliases), "n"))
        op: Any = dice.pick(["<>", ">", "<="])
        where = (Compare(Column("", asked), op, dice.number(1, 2)),)
    if dice.one_in(4):
        return GroupCall(name=name, function="count_star", where=where)
    column = Column(dice.pick(aliases), dice.pick("nnnsm"))
    function: Any = dice.pick(_OF_NUMBERS if column.name == "n" else _OF_TEXTS)
    argument = _argument(entry, column)
    return GroupCall(name=name, function=function, argument=argument, where=where)


def _argument(entry: list[Output], column: Column) -> str:
    known = next((each.name for each in entry if each.term == column), None)
    if known is None:
        known = f"a{len(entry)}"
        entry.append(Output(name=known, term=column))
    return known


def _selected(
    dice: Dice, keys: Sequence[str], calls: Sequence[GroupCall], window: Hop | Session | None
) -> tuple[tuple[str, str], ...]:
    found = [(f"of_{key}", key) for key in keys]
    found += [(f"is_{call.name}", call.name) for call in calls]
    if window is not None and dice.one_in(2):
        found.append(("since", START))
    return tuple(reversed(found)) if dice.one_in(3) else tuple(found)


def _having(dice: Dice, calls: Sequence[GroupCall]) -> tuple[Condition, ...]:
    names = [call.name for call in calls if call.function in _WHOLE]
    if not names:
        return ()
    op: Any = dice.pick([">", "<", "<>", "<="])
    return (Compare(Column("", dice.pick(names)), op, dice.number(1, 3)),)
