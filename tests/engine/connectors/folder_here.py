"""A folder that a source reads, a state, and a clock."""

import os
from pathlib import Path
from typing import Any

from kaflow_engine.connectors.files.source.source import FilesSource
from kaflow_engine.connectors.sources.contract import SourcePlace
from kaflow_engine.flow.origins.files import FilesParams
from kaflow_engine.state.storage.store import LocalStore

NOW = 1_795_296_000_000


class World:
    """A folder, a state, and a clock."""

    def __init__(self, path: Path) -> None:
        self.inside, self.state, self.now = path / "in", path / "state", NOW
        self.inside.mkdir()

    def source(self, **more: Any) -> FilesSource:
        place = SourcePlace(
            name="s", store=LocalStore(self.state), journal=self.state, clock=lambda: self.now
        )
        return FilesSource(self.params(**more), place)

    def params(self, **more: Any) -> FilesParams:
        said: dict[str, Any] = {"path": str(self.inside), "format": "json", "header": False}
        said["settle"] = 0
        return FilesParams(**(said | more))

    def write(self, name: str, *lines: str, at: int = NOW - 60_000) -> Path:
        path = self.inside / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines))
        os.utime(path, ns=(at * 1_000_000, at * 1_000_000))
        return path


def read(source: FilesSource, start: int = 0, end: int | None = None) -> list[str]:
    stop = source.latest()[0] if end is None else end
    found: list[bytes | None] = source.read({0: start}, {0: stop})["value"].to_pylist()
    return [("-" if value is None else value.decode()) for value in found]
