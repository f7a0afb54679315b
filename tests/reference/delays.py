"""How far rows that go into groups may be behind the watermark of their chain."""

from dataclasses import replace

from tests.reference.chain import OracleChain
from tests.reference.grouping import Grouping, Hop, Session
from tests.reference.pipeline import OraclePipeline


def with_delays(pipeline: OraclePipeline) -> OraclePipeline:
    """Return a pipeline whose groups know how late the rows may be that they get."""
    delays = {chain.chain: _delay_of(chain) for chain in OracleChain.all_of(pipeline)}
    ttls = {chain.chain: _ttl_of(chain) for chain in OracleChain.all_of(pipeline)}
    writes = (
        replace(write, groups=_delayed(write.groups, delays[write.chain], ttls[write.chain]))
        for write in pipeline.writes
    )
    return replace(pipeline, writes=tuple(writes))


def _delay_of(chain: OracleChain) -> int:
    """Rows that may wait, or meet others later, are behind by the time of their driving record."""
    required = any(term.alias != chain.driving for term in chain.required())
    events = any(not chain.topics[join.topic].dimension for join in chain.joins)
    waits = not chain.filters and any(join.inner for join in chain.joins)
    rests = required or events or waits
    return chain.ttl if rests or (chain.joins and chain.emission == "final") else 0


def _ttl_of(chain: OracleChain) -> int:
    events = (join.topic for join in chain.joins if not chain.topics[join.topic].dimension)
    return max([chain.ttl, *map(chain.kept, events)])


def _delayed(groups: tuple[Grouping, ...], delay: int, ttl: int) -> tuple[Grouping, ...]:
    found: list[Grouping] = []
    for group in groups:
        if group.passed_on:  # it is over right after the groups whose window it has
            delay = found[-1].delay + max(0, found[-1].grace - group.grace)
        found.append(replace(group, delay=delay, remembers=ttl))
        match group.window:
            case Hop(size=length) | Session(gap=length):
                delay += length + group.grace
            case None:
                pass
    return tuple(found)
