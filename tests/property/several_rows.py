"""Dimensions of a random scenario as tables, whose key is not always what they are joined by."""

from dataclasses import replace

from tests.property.dice import Dice
from tests.property.scenario import Scenario
from tests.reference.pipeline import Chain, OraclePipeline, Topic

_KEYS = [("id",), ("id",), ("m",), ("n",), ("_key",), ("_key",), ("id", "n"), ("k",)]


def with_tables(dice: Dice, scenario: Scenario) -> Scenario:
    """Let dimensions be tables, of which a join finds one row, or all with its key."""
    pipeline = scenario.pipeline
    if pipeline.reemit or scenario.writing.right or scenario.writing.tables:
        return scenario
    topics = {
        name: _as_table(dice, scenario, topic) if _may_be_table(pipeline, name) else topic
        for name, topic in pipeline.topics.items()
    }
    return replace(scenario, pipeline=replace(pipeline, topics=topics))


def finds_several(pipeline: OraclePipeline) -> bool:
    """Tell whether a join looks up all rows with its key."""
    joins = (join for chain in pipeline.chains for join in chain.joins)
    return any(pipeline.topics[join.topic].finds_several(join) for join in joins)


def _as_table(dice: Dice, scenario: Scenario, topic: Topic) -> Topic:
    primary = dice.pick(_KEYS)
    nulls = [r for r in scenario.records if r.topic == topic.name and r.value is None]
    if primary == ("n",) and any(r.key is not None and not r.key.isdigit() for r in nulls):
        primary = ("id",)  # a key that is no number is a dead letter of the table
    return replace(topic, primary=primary, lookup="current", history=None, key=None)


def _may_be_table(pipeline: OraclePipeline, name: str) -> bool:
    """Tell whether events look up a topic, and it drives nothing; under `final`, over one key."""
    joining = [chain for chain in pipeline.chains if any(chain.sides_of(name))]
    driving = {chain.driving_topic for chain in pipeline.chains}
    return (
        pipeline.topics[name].dimension
        and name not in driving
        and all(_may_look_up(pipeline, chain) for chain in joining)
    )


def _may_look_up(pipeline: OraclePipeline, chain: Chain) -> bool:
    by_events = not pipeline.topics[chain.driving_topic].dimension
    return by_events and (pipeline.emission != "final" or len(chain.steps) == 1)
