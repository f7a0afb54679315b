"""How a source of files keeps what it has found, and how often it looks."""

from pathlib import Path

import pytest

from kaflow_engine.connectors.files.source import source as files
from kaflow_engine.connectors.files.source.folder import Folders
from kaflow_engine.connectors.files.source.seen import Seen
from kaflow_engine.state.storage.store import Damaged
from tests.engine.connectors.folder_here import World, read


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_what_was_found_is_kept_in_pages(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_SHARE", 0)  # a look may take long on a busy machine
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


def test_what_another_machine_has_found_must_fit(world: World) -> None:
    world.write("b", "1")
    source = world.source()
    found = source.found({0: 0}, source.latest())
    source.know(found)
    (world.state / "sources/s/00000001.json").unlink()
    world.write("a", "0")
    other = world.source()
    assert read(other) == ["0", "1"]
    with pytest.raises(Damaged, match=f"'sources/s' has another file than '{world.inside}/b' at"):
        other.know(found)
    (world.state / "sources/s/00000001.json").unlink()
    with pytest.raises(
        Damaged, match=r"'sources/s' ends at offset 0, and a batch reads '.*/c' from"
    ):
        world.source().know([{**found[0], "path": f"{world.inside}/c", "first": 5}])


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
