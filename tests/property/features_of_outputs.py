"""What the outputs, chains and unions of a scenario exercise, by name."""

from collections import Counter
from collections.abc import Iterator

from tests.property.pipelines import has_early_events
from tests.property.render import to_mapping, written_tables
from tests.property.scenario import Scenario
from tests.property.several_rows import finds_several
from tests.property.unions import common_where
from tests.reference.pipeline import OraclePipeline, Write
from tests.reference.unions import kind_of

EXPECTED_OF_OUTPUTS = frozenset(
    """
    outputs:2 outputs:3 outputs:from outputs:over_a_relation outputs:one_over_a_relation
    outputs:repeat_the_joins outputs:same_key outputs:keys outputs:same_where outputs:wheres
    outputs:early_events outputs:forced_together outputs:require_of_one outputs:take_other_rows
    outputs:none_takes
    chains:2 chains:one_topic chains:two_topics chains:joins_what_drives chains:share_a_side
    chains:over_relations chains:several_outputs_of_one chains:final chains:smart chains:on_match
    chains:both_emit chains:one_fails chains:both_fail chains:watermarks_differ
    chains:undecodable_in_both chains:waits_in_one
    union:2 union:3 union:of_one_chain union:of_chains union:of_topics union:beside_an_output
    union:over_relations union:relation union:asked_of_all union:as_text union:types
    outputs:look_up_tables outputs:find_several_rows
    union:unnest_in_one union:unnest_in_all union:key_differs union:record_in_branches
    """.split()
)
"""Every name that must come up."""


def features_of_outputs(scenario: Scenario) -> Iterator[str]:
    """Name what concerns outputs and what is behind them."""
    pipeline, writing = scenario.pipeline, scenario.writing
    if len(pipeline.chains) > 1:
        yield from _chains(scenario)
    if written_tables(scenario):
        yield "outputs:look_up_tables"
    if finds_several(pipeline):
        yield "outputs:find_several_rows"
    for branches in pipeline.outputs:
        if len(branches) > 1:
            yield from _union(scenario, branches)
    if writing.relation and len(pipeline.writes) == 1:
        yield "outputs:one_over_a_relation"
    if len(pipeline.outputs) > 1:
        yield f"outputs:{len(pipeline.outputs)}"
        if any("from" in output for output in to_mapping(scenario)["outputs"]):
            yield "outputs:from"
    if len(pipeline.chains) == 1 and len(pipeline.writes) == len(pipeline.outputs) > 1:
        yield from _of_one_chain(scenario)


def _of_one_chain(scenario: Scenario) -> Iterator[str]:
    pipeline, writing = scenario.pipeline, scenario.writing
    yield "outputs:over_a_relation" if writing.relation else "outputs:repeat_the_joins"
    yield "outputs:same_key" if len({w.key_term for w in pipeline.writes}) == 1 else "outputs:keys"
    yield "outputs:same_where" if len({w.where for w in pipeline.writes}) == 1 else "outputs:wheres"
    if has_early_events(pipeline.topics, pipeline.chains[0]):
        yield "outputs:early_events"
        if pipeline.emission == "smart" and pipeline.on_expiry != "drop":
            yield "outputs:forced_together"
    if any(not all(_names(w, name) for w in pipeline.writes) for name in pipeline.require):
        yield "outputs:require_of_one"
    said = scenario.interpret()
    places = Counter(row.topic for row in said.rows)
    if len(places) == len(pipeline.writes) and len(set(places.values())) > 1:
        yield "outputs:take_other_rows"
    if any(letter.phase in ("sql", "encode") for letter in said.dead_letters):
        yield "outputs:none_takes"


def _names(write: Write, name: str) -> bool:
    return any(output.name == name for output in write.select)


def _chains(scenario: Scenario) -> Iterator[str]:
    pipeline, said = scenario.pipeline, scenario.interpret()
    first, second = pipeline.chains
    yield "chains:2"
    same = first.driving_topic == second.driving_topic
    yield "chains:one_topic" if same else "chains:two_topics"
    sides = [{join.topic for join in chain.joins} for chain in (first, second)]
    if not same and ({first.driving_topic} & sides[1] or {second.driving_topic} & sides[0]):
        yield "chains:joins_what_drives"
    if sides[0] & sides[1]:
        yield "chains:share_a_side"
    if scenario.writing.relation:
        yield "chains:over_relations"
    if max(Counter(write.chain for write in pipeline.writes).values()) > 1:
        yield "chains:several_outputs_of_one"
    if pipeline.emission != "immediate":
        yield f"chains:{pipeline.emission}"
    topics = [{w.topic for w in pipeline.writes if w.chain == chain} for chain in pipeline.chains]
    alone = topics[0] - topics[1], topics[1] - topics[0]
    if all({row.topic for row in said.rows} & own for own in alone):
        yield "chains:both_emit"
    failed = {
        place: [each.chain for each in said.dead_letters if each.place == place]
        for place in {each.place for each in said.dead_letters if each.chain}
    }
    if any(len(set(each)) == 1 for each in failed.values()):
        yield "chains:one_fails"
    if any(len(set(each)) > 1 for each in failed.values()):
        yield "chains:both_fail"
    if any(len(set(result.watermarks)) > 1 for result in said.results):
        yield "chains:watermarks_differ"
    decoded = {each.topic for each in said.dead_letters if not each.chain}
    if same and first.driving_topic in decoded:
        yield "chains:undecodable_in_both"
    if said.counters.get("waiting") and said.counters.get("emitted"):
        yield "chains:waits_in_one"


def _union(scenario: Scenario, branches: tuple[Write, ...]) -> Iterator[str]:
    pipeline, writing = scenario.pipeline, scenario.writing
    yield f"union:{len(branches)}"
    chains = {write.chain for write in branches}
    yield "union:of_one_chain" if len(chains) == 1 else "union:of_chains"
    if len({chain.driving_topic for chain in chains}) > 1:
        yield "union:of_topics"
    if len(pipeline.outputs) > 1:
        yield "union:beside_an_output"
    if writing.relation:
        yield "union:over_relations"
    if writing.united:
        yield "union:asked_of_all" if common_where(branches)[0] else "union:relation"
    if any(output.as_text for write in branches for output in write.select):
        yield "union:as_text"
    if _types(pipeline, branches):
        yield "union:types"
    unnesting = [bool(write.unnests) for write in branches]
    if any(unnesting):
        yield "union:unnest_in_all" if all(unnesting) else "union:unnest_in_one"
    if len({write.key_term for write in branches}) > 1:
        yield "union:key_differs"
    said = scenario.interpret()
    here = sum(row.topic == branches[0].topic for row in said.rows)
    if len(chains) == 1 and not any(unnesting) and here > said.counters.get("emitted", 0):
        yield "union:record_in_branches"


def _types(pipeline: OraclePipeline, branches: tuple[Write, ...]) -> bool:
    """Tell whether numbers of several types come together."""
    columns = {name: topic.columns for name, topic in pipeline.topics.items()}
    kinds = [[kind_of(write, each.term, columns) for each in write.select] for write in branches]
    return any(len({*each} - {"VARCHAR"}) > 1 for each in zip(*kinds, strict=True))
