"""Lists in the records of a random scenario, and outputs that unnest them."""

from dataclasses import replace
from typing import Any

from tests.property.dice import Dice
from tests.property.render import ELEMENTS
from tests.property.scenario import Scenario
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
    pipeline, first = scenario.pipeline, dice.number(0, len(scenario.pipeline.writes) - 1)
    writes = tuple(
        _unnesting(dice, pipeline, write) if place == first or dice.one_in(2) else write
        for place, write in enumerate(pipeline.writes)
    )
    topics = {
        name: replace(topic, columns={**topic.columns, LIST: "VARCHAR[]"})
        for name, topic in pipeline.topics.items()
    }
    items = tuple(
        item if isinstance(item, int) else tuple(_with_list(dice, record) for record in item)
        for item in scenario.items
    )
    unnesting = replace(pipeline, writes=writes, topics=topics, reemit=False)
    return replace(scenario, pipeline=unnesting, items=items)


def _with_list(dice: Dice, record: Record) -> Record:
    if record.value is None:
        return record
    return replace(record, value={**record.value, LIST: dice.pick(_LISTS)})


def _unnesting(dice: Dice, pipeline: OraclePipeline, write: Write) -> Write:
    sides = [pipeline.driving, *(join.alias for join in pipeline.joins)]
    made = tuple(
        Unnest(alias=alias, name=name, list=Column(dice.pick(sides), LIST))
        for alias, name in zip(ELEMENTS, "xy" if dice.one_in(3) else "x", strict=False)
    )
    elements = [Column(each.alias, each.name) for each in made]
    select = [Output(name=each.name, term=_term(dice, each)) for each in elements]
    where = list(write.where)
    if dice.one_in(3):
        where.append(Compare(dice.pick(elements), dice.pick(["<>", "=", "<"]), "p"))
    if dice.one_in(6):
        where.append(IsNull(dice.pick(elements), negated=True))
    of_driving = made[0].list.alias == pipeline.driving
    may_be_key = of_driving or all(pipeline.is_dimension(join) for join in pipeline.joins)
    plain = isinstance(select[0].term, Column)
    return replace(
        write,
        select=(*write.select, *select),
        where=tuple(where),
        unnests=made,
        key="x" if may_be_key and plain and dice.one_in(3) else write.key,
    )


def _term(dice: Dice, column: Column) -> Term:
    kinds: list[Term] = [
        *[column] * 6,
        Call("upper", column),
        Call("coalesce", column, "none"),
        Call("integer", column),
    ]
    return dice.pick(kinds)
