"""How a source of files keeps what it has found, and how often it looks."""

from pathlib import Path

import pytest

from kaflow_engine.connectors.files.source.folder import Folders
from kaflow_engine.connectors.files.source.seen import Seen
from tests.engine.connectors.files_here import World, read


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_what_was_found_is_kept_in_pages(world: World) -> None:
    source = world.source()
    names: list[str] = []
    for number in range(300):
        names.append(f"{number:03d}")
        world.write(names[-1], names[-1])
        if number % 7 == 0:
            source.latest()
    assert read(source) == read(world.source()) == names
    pages = sorted(path.name for path in world.state.rglob("*.json"))
    assert pages == ["00000001.json", "00000002.json"]


def test_a_folder_that_takes_long_to_look_at_is_looked_at_less(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed, looks = [100.0], [0]
    monkeypatch.setattr("time.monotonic", lambda: passed[0])

    def slow(self: Folders, path: str) -> list[Seen]:
        looks[0] += 1
        passed[0] += 1
        return []

    monkeypatch.setattr(Folders, "look", slow)
    source = world.source()
    for _ in range(24):
        assert source.latest() == {0: 0}
        passed[0] += 0.5
    assert looks[0] == 2
