"""Where a data source began, as long as no row of it is written down."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kaflow_engine.connectors.journal.folder import whole_file


class FirstOffset:
    """The file of it: a data source that begins at what is new by then is asked once.

    Args:
        folder: Where it is.
        kind: Whose offset it is.
    """

    def __init__(self, folder: Path, kind: str) -> None:
        self._path, self._kind = folder / "first.json", kind

    def kept(self, ask: Callable[[], Any]) -> Any:
        """Return where the data source began.

        Args:
            ask: Says it, where that is not known; what it returns is kept, as data for JSON.

        Raises:
            OSError: It cannot be kept.
        """
        if self._path.exists():
            known = json.loads(self._path.read_text())
            if known["of"] == self._kind:
                return known["offset"]
        found = ask()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(self._path) as file:
            file.write(json.dumps({"of": self._kind, "offset": found}).encode())
        return found

    def drop(self) -> None:
        """Remove it: rows are written down, with the offset behind them."""
        self._path.unlink(missing_ok=True)
