"""Where a data source began, as long as no row of it is written down."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kaflow_engine.state.storage.store import LocalStore

_NAME = "first.json"


class FirstOffset:
    """The file of it: a data source that begins at what is new by then is asked once.

    Args:
        folder: Where it is.
        kind: Whose offset it is.
    """

    def __init__(self, folder: Path, kind: str) -> None:
        self._store, self._kind = LocalStore(folder), kind

    def kept(self, ask: Callable[[], Any]) -> Any:
        """Return where the data source began.

        Args:
            ask: Says it, where that is not known; what it returns is kept, as data for JSON.

        Raises:
            StateError: It cannot be kept.
        """
        if self._store.exists(_NAME):
            known = json.loads(self._store.get(_NAME))
            if known["of"] == self._kind:
                return known["offset"]
        found = ask()
        self._store.put(_NAME, json.dumps({"of": self._kind, "offset": found}).encode())
        return found

    def drop(self) -> None:
        """Remove it: rows are written down, with the offset behind them."""
        self._store.delete(_NAME)
