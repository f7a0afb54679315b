"""What a state holds that a new plan needs elsewhere: no chain hands over what it keeps."""

from collections.abc import Iterator

from kaflow_engine.flow.chains.chain import Chain, chains, feeds
from kaflow_engine.flow.chains.names import chain_called
from kaflow_engine.flow.edges import SideParams
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import projects_of, side_name
from kaflow_engine.plan.evolution.begun import lacking
from kaflow_engine.plan.evolution.evolution import has_joins_of, is_table, keeps_rows, pairs_of
from kaflow_engine.plan.evolution.timed import held_lost


def left_behind(old: Flow, new: Flow) -> tuple[str, ...]:
    """Return why a state cannot go on, although each chain that stays could.

    Args:
        old: The plan of the state.
        new: The plan that is to run, as it inherits the state.
    """
    return (
        *_not_loaded(old, new),
        *_rows_left(old, new),
        *lacking(old, new),
        *held_lost(old, new),
    )


def _not_loaded(old: Flow, new: Flow) -> Iterator[str]:
    """Yield the dimensions of new joins whose topic is read already, and not from its beginning.

    A topic is loaded when the pipeline begins to read it; what was read before is not kept for
    joins that were not there.
    """
    read = {topic.name for topic in old.sources}
    alone = len(chains(old)) == len(chains(new)) == 1
    known = {after.number: before for before, after in pairs_of(old, new)}
    for chain in chains(new):
        before = known.get(chain.number)
        if before is not None and not has_joins_of(before, chain):
            continue  # that it is another chain is said already
        whose = "" if alone else f"{chain_called(new, chain)}, "
        for step, side in _added(before, chain):
            topic = side_name(new, side)
            if side.role == "dimension" and not is_table(new, side) and topic in read:
                yield (
                    f"{whose}step {step}, side '{side.alias}': topic '{topic}' is read already, "
                    "and its values are not kept for this join"
                )


def _added(before: Chain | None, chain: Chain) -> Iterator[tuple[int, SideParams]]:
    """Yield the sides that a chain did not have, with the number of their step."""
    steps = before.joins if before else ()
    known = {side.alias for step in steps for side in step.sides}
    for number, step in enumerate(chain.joins, 1):
        for side in step.sides:
            if side.alias not in known:
                yield number, side


def _rows_left(old: Flow, new: Flow) -> Iterator[str]:
    """Yield the outputs whose rows come from elsewhere, while some wait in a chain that fed them.

    A SELECT that a union has no more takes its rows along, as an output does that is removed.
    """
    branches = {sink.target: len(projects_of(new, sink)) for sink in new.sinks}
    now = {(sink.target, chain.number) for chain in chains(new) for sink, _ in feeds(new, chain)}
    for chain in chains(old):
        if not any(keeps_rows(old, step) for step in chain.joins):
            continue
        for sink in dict.fromkeys(sink for sink, _ in feeds(old, chain)):
            stays = branches.get(sink.target, 0) >= len(projects_of(old, sink))
            if stays and (sink.target, chain.number) not in now:
                yield (
                    f"output '{sink.target}': its rows come from other joins, and those that wait "
                    "stay behind"
                )
