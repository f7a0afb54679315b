"""Times by chain as JSON: one number where chain 0 is the only one, else an object."""

from collections.abc import Mapping
from typing import Annotated, cast

from pydantic import BeforeValidator, PlainSerializer

Stored = int | None | Mapping[str, int | None]
"""Of chain 0 alone its time, None where it has none; else times by the number of the chain."""


def to_stored(times: Mapping[int, int | None]) -> Stored:
    """Return times by chain as JSON.

    >>> to_stored({0: 7}), to_stored({}), to_stored({0: 7, 2: None})
    (7, None, {'0': 7, '2': None})
    """
    if not times.keys() - {0}:
        return times.get(0)
    return {str(chain): times[chain] for chain in sorted(times)}


def from_stored(stored: Stored) -> dict[int, int | None]:
    """Read what `to_stored` wrote.

    >>> from_stored(7), from_stored(None), from_stored({"0": 7, "2": None})
    ({0: 7}, {}, {0: 7, 2: None})
    """
    if isinstance(stored, Mapping):
        return {int(chain): time for chain, time in stored.items()}
    return {} if stored is None else {0: stored}


def known(times: Mapping[int, int | None]) -> dict[int, int]:
    """Return the times of those chains that have one."""
    return {chain: time for chain, time in times.items() if time is not None}


def least(times: Mapping[int, int | None]) -> int | None:
    """Return the least time; None while a chain has none."""
    found = known(times)
    return min(found.values()) if found and len(found) == len(times) else None


def _read(stored: object) -> object:
    """Return what the validator judges: records that were altered are refused there."""
    if isinstance(stored, Mapping):
        return cast(object, stored)
    return {} if stored is None else {0: stored}


ByChain = Annotated[dict[int, int], BeforeValidator(_read), PlainSerializer(to_stored)]
"""A field of a record: epoch milliseconds by chain, those that are known."""
