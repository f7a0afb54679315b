"""What a database must offer in which positions stand; nothing of one is imported."""

import json
from collections.abc import Iterable, Mapping
from typing import Protocol

from kaflow_engine.errors import SinkUnfit


class PositionTable(Protocol):
    """A table `state` with namespace, key, data and created_at; made where it is not there."""

    def read(self, namespace: str, keys: Iterable[str]) -> Mapping[str, str]:
        """Return the data of those keys that are there.

        Raises:
            SinkError: It cannot be read.
        """
        ...

    def write(self, namespace: str, data: Mapping[str, str]) -> None:
        """Put data under keys; `created_at` of those that are there stays.

        Raises:
            SinkError: It cannot be written.
        """
        ...


def position_text(offset: int, now: int) -> str:
    """Return a position as it is written: the next offset, and when, in epoch milliseconds.

    >>> position_text(87, 1764785420620)
    '{"offset": 87, "updated_at": 1764785420620}'
    """
    return json.dumps({"offset": offset, "updated_at": now})


def offset_of(key: str, data: str) -> int:
    """Return the offset of a position.

    Raises:
        SinkUnfit: It has none.

    >>> offset_of("orders:shop.orders:0", '{"offset": 87, "updated_at": 1764785420620}')
    87
    """
    try:
        offset = json.loads(data)["offset"]
    except (ValueError, TypeError, KeyError):
        offset = None
    if not isinstance(offset, int) or isinstance(offset, bool) or offset < 0:
        raise SinkUnfit(
            f"the position '{key}' of the state backend has no offset: {data[:80]}",
            hint="correct or delete it; without it the topic begins as the configuration says",
        )
    return offset
