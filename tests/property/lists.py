"""Lists in the records of a random scenario, and outputs that unnest them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.property.dice import Dice
from tests.property.scenario import Scenario
from tests.property.sql import ELEMENTS
from tests.property.unions import with_types
from tests.reference.conditions import Call, Column, Compare, IsNull, Term
from tests.reference.pipeline import OraclePipeline, Output, Unnest, Write
from tests.reference.records import Record

LIST = "l"
"""The column with a list."""
_LISTS: list[Any] = [["p"], ["q", "p"], ["p", "1", "p"], ["7", None], ["2", "1"], [], None]


def with_lists(dice: Dice, scenario: Scenario) -> Scenario:
    """Let outputs of some scenarios unnest lists of their sides."""
    if not dice.one_in(4):
        return scenario
    pipeline, first = scenario.pipeline, dice.number(0, len(scenario.pipeline.outputs) - 1)
    writes = tuple(
        write
        for place, branches in enumerate(pipeline.outputs)
        for write in (
            _unnesting(dice, pipeline, branches) if place == first or dice.one_in(2) else branches
        )
    )
    topics = {
        name: replace(topic, columns={**topic.columns, LIST: "VARCHAR[]"})
        for name, topic in pipeline.topics.items()
    }
    items = tuple(
        item if isinstance(item, int) else tuple(_with_list(dice, record) for record in item)
        for item in scenario.items
    )
    unnesting = with_types(replace(pipeline, writes=writes, topics=topics, reemit=False))
    return replace(scenario, pipeline=unnesting, items=items)


def _with_list(dice: Dice, record: Record) -> Record:
    if record.value is None:
        return record
    return replace(record, value={**record.value, LIST: dice.pick(_LISTS)})


def _unnesting(dice: Dice, pipeline: OraclePipeline, branches: Sequence[Write]) -> Sequence[Write]:
    """Add elements to an output; of a union other branches may have plain columns there."""
    named = "xy" if dice.one_in(3) else "x"
    may_be_key = dice.one_in(3)
    made: list[Write] = []
    for write in branches:
        if made and dice.one_in(2):
            plain = (Output(name=name, term=Column("d", dice.pick("ks"))) for name in named)
            made.append(replace(write, select=(*write.select, *plain)))
            continue
        made.append(_unnested(dice, write, named))
        (first, *_), select = made[-1].unnests, made[-1].select
        of_driving = first.list.alias == write.chain.driving
        looked_up = all(pipeline.is_dimension(join) for join in write.chain.joins)
        plain_x = any(o.name == "x" and isinstance(o.term, Column) for o in select)
        may_be_key = may_be_key and plain_x and (of_driving or looked_up)
    return [replace(write, key="x") for write in made] if may_be_key else made


def _unnested(dice: Dice, write: Write, named: str) -> Write:
    made = tuple(
        Unnest(alias=alias, name=name, list=Column(dice.pick(write.chain.sides), LIST))
        for alias, name in zip(ELEMENTS, named, strict=False)
    )
    elements = [Column(each.alias, each.name) for each in made]
    select = [Output(name=each.name, term=_term(dice, each)) for each in elements]
    where = list(write.where)
    if dice.one_in(3):
        where.append(Compare(dice.pick(elements), dice.pick(["<>", "=", "<"]), "p"))
    if dice.one_in(6):
        where.append(IsNull(dice.pick(elements), negated=True))
    return replace(write, select=(*write.select, *select), where=tuple(where), unnests=made)


def _term(dice: Dice, column: Column) -> Term:
    kinds: list[Term] = [
        *[column] * 6,
        Call("upper", column),
        Call("coalesce", column, "none"),
        Call("integer", column),
    ]
    return dice.pick(kinds)
