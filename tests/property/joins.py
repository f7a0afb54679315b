"""Random chains: a driving topic and what is joined to it."""

from dataclasses import replace

from tests.property.dice import Dice
from tests.reference.conditions import Call, Column, Term
from tests.reference.pipeline import Chain, Join

EVENTS = ("orders", "payments", "click-stream")
DIMENSIONS = ("users", "shops.eu")
_JOINS = [0, 1, 1, 1, 1, 2, 2, 2, 3, 3]


def random_chain(dice: Dice) -> Chain:
    """Choose a chain with up to three joins."""
    driving = DIMENSIONS[0] if dice.one_in(8) else dice.pick(EVENTS)
    return Chain(driving="d", driving_topic=driving, joins=_joins(dice, driving))


def another_chain(dice: Dice, first: Chain) -> Chain | None:
    """Choose a second chain, most often one that has something in common with the first."""
    kind = dice.pick(["driving", "joins", "exchanged", "any"])
    events = [join.topic for join in first.joins if join.topic in EVENTS]
    other = random_chain(dice)
    if kind == "driving":
        others = [topic for topic in EVENTS if topic != first.driving_topic]
        other = replace(first, driving_topic=dice.pick(others))
    elif kind == "joins":
        fewer = dice.one_in(2) and first.joins and not _needed(first, first.joins[-1].alias)
        joins = first.joins[:-1] if fewer else _joins(dice, first.driving_topic)
        other = replace(first, joins=joins)
    elif kind == "exchanged" and events:
        driving = dice.pick(events)
        back = (*_joins(dice, first.driving_topic), *_joins(dice, driving))
        other = replace(first, driving_topic=driving, joins=back[:1])
    looked_up = {join.topic for join in first.joins if join.topic in DIMENSIONS}
    looks_up = {join.topic for join in other.joins if join.topic in DIMENSIONS}
    refused = other.driving_topic in looked_up or first.driving_topic in looks_up
    return None if refused or other == first else other


def _needed(chain: Chain, alias: str) -> bool:
    return any(left.alias == alias for join in chain.joins for left, _ in join.on)


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
