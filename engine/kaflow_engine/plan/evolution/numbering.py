"""Which chain of a new plan goes on with the state of which old one."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kaflow_engine.flow.chains.chain import Chain, chains, chains_below, feeds
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import side_name, source_of
from kaflow_engine.flow.numbers import used_numbers

Fits = Callable[[Chain, Chain], bool]
"""Takes a chain of the old plan and one of the new."""


def numbers_of(old: Flow, new: Flow, goes_on: Fits) -> Mapping[int, int]:
    """Return, by the number that a chain of a new plan has, the one that it gets.

    A chain gets the number of the one that it goes on with. First come those that feed the same
    SELECT: with the same joins, then with more; then those that read and join the same for another
    output; then those with more joins for another SELECT of the output; last those whose SELECT has
    other joins now, so that the difference is found. Others get numbers that no chain has had.

    Args:
        old: The plan of the state.
        new: The plan of the file.
        goes_on: Tells whether a chain has all joins of an old one.
    """
    left, rest = list(chains(old)), list(chains(new))
    found: dict[int, int] = {}

    def fed_alike(one: Chain, other: Chain) -> bool:
        return bool(_selects(old, one) & _selects(new, other))

    def same_output(one: Chain, other: Chain) -> bool:
        return bool({name for name, _ in _selects(old, one)} & {n for n, _ in _selects(new, other)})

    def reads_alike(one: Chain, other: Chain) -> bool:
        return _reads(old, one) == _reads(new, other)

    alone = len(left) == len(rest) == 1
    ways: tuple[Fits, ...] = (
        lambda one, other: fed_alike(one, other) and reads_alike(one, other),
        lambda one, other: fed_alike(one, other) and goes_on(one, other),
        reads_alike,
        lambda one, other: same_output(one, other) and goes_on(one, other),
        lambda one, other: alone or fed_alike(one, other),
    )
    for fits in ways:
        for chain in tuple(rest):
            partner = next((each for each in left if fits(each, chain)), None)
            if partner is not None:
                found[chain.number] = partner.number
                left.remove(partner)
                rest.remove(chain)
    unused = max(used_numbers(old)) + 1
    return {**found, **{chain.number: unused + n for n, chain in enumerate(rest)}}


def _selects(flow: Flow, chain: Chain) -> frozenset[tuple[str, int]]:
    return frozenset((sink.target, branch) for sink, branch in feeds(flow, chain))


def _reads(flow: Flow, chain: Chain) -> Sequence[Any]:
    """Return what a chain reads and joins, however much of it is kept."""
    return [
        (chain.driving.alias, source_of(flow, chain.driving).name),
        [
            [
                (side.alias, side_name(flow, side), side.role, side.kind, side.key)
                for side in join.sides
            ]
            for join in chain.joins
        ],
        [join.rows.key for join in chain.joins],
        *(_reads(flow, each) for each in chains_below(flow, chain)),
    ]
