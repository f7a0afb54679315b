"""Headers of output records in random scenarios."""

from dataclasses import replace

from tests.property.dice import Dice
from tests.property.scenario import Scenario
from tests.reference.beside import NONE, Headers, Made
from tests.reference.conditions import Column
from tests.reference.pipeline import Write
from tests.reference.records import Record

_NAMES = ("a", "b", "kaflow.other", "")
_VALUES = ("x", "", "é", None)


def with_headers(dice: Dice, scenario: Scenario) -> Scenario:
    """Return a scenario in which some outputs set headers, and records have some to pass on.

    In the branches of a union they are of one type, and some have none.
    """
    pipeline = scenario.pipeline
    passed = {branches[0].topic: dice.one_in(2) for branches in pipeline.outputs}
    chosen = {topic for topic in passed if dice.one_in(3)}
    writes = [
        replace(write, headers=_headers(dice, write, passed=passed[write.topic]))
        if write.topic in chosen and not write.groups
        else write
        for write in pipeline.writes
    ]
    if all(write.headers is None for write in writes):
        return scenario
    items = tuple(
        item if isinstance(item, int) else tuple(_with_headers(dice, record) for record in item)
        for item in scenario.items
    )
    return replace(scenario, pipeline=replace(pipeline, writes=tuple(writes)), items=items)


def _headers(dice: Dice, write: Write, *, passed: bool) -> Headers | None:
    if write.branch and dice.one_in(4):
        return NONE
    if passed:
        return Column(write.chain.driving, "_headers")
    columns = [Column(alias, name) for alias in write.chain.sides for name in ("k", "n", "_key")]
    some = dice.some(columns, 2)
    pairs = [(name, column) for name, column in zip(_NAMES, some, strict=False)]
    return Made((*pairs, ("is", dice.pick(_VALUES)), ("and", "y")))


def _with_headers(dice: Dice, record: Record) -> Record:
    names = dice.some(_NAMES, 3)
    return replace(record, headers={name: dice.pick(_VALUES) for name in names})
