"""Files as a source: what is found, when it is whole, and what is refused."""

import gzip
import json
import logging
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kaflow_engine.connectors.files.source import source as files
from kaflow_engine.connectors.files.source.contents import CHUNK
from kaflow_engine.connectors.files.source.folder import Folders
from kaflow_engine.connectors.sources.kinds import source_kind
from kaflow_engine.errors import SourceAway, SourceUnfit
from kaflow_engine.formats.contract import format_of
from kaflow_engine.model.columns import Column
from kaflow_engine.model.letters import FROM, UNREADABLE
from kaflow_engine.state.storage.store import Damaged
from tests.engine.connectors.folder_here import NOW, World, read


@pytest.fixture(autouse=True)
def _looks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_SHARE", 0)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_files_are_read_in_the_order_in_which_they_are_found_and_then_of_their_names(
    world: World,
) -> None:
    world.write("b", "1")
    world.write("a", "2", "3")
    source = world.source()
    assert read(source) == ["2", "3", "1"]
    world.write("deep/0", "4")
    world.write("_SUCCESS", "no")
    world.write(".hidden", "no")
    world.write("_temporary/9", "no")
    world.write("empty")
    assert read(source) == ["2", "3", "1", "4"]
    assert read(world.source(), 2) == ["1", "4"]
    times = source.read({0: 0}, {0: 1})
    assert times["timestamp"].to_pylist() == [NOW - 60_000]
    assert {h["key"]: h["value"] for h in times["headers"].to_pylist()[0]} == {
        FROM: str(world.inside / "a").encode()
    }


@pytest.mark.parametrize(("pattern", "found"), [("*.json", ["1"]), ("**/*.json", ["1", "2"])])
def test_a_pattern_names_files(world: World, pattern: str, found: list[str]) -> None:
    world.write("a.json", "1")
    world.write("below/b.json", "2")
    world.write("a.csv", "no")
    assert read(world.source(path=f"{world.inside}/{pattern}")) == found


def test_a_file_is_whole_when_no_one_has_written_to_it_for_a_while(world: World) -> None:
    source = world.source(settle=2_000)
    world.write("a", "1", at=NOW - 2_000)
    world.write("b", "2", at=NOW - 1_999)
    assert read(source) == ["1"]
    world.write("b", "2", "3", at=NOW)
    world.now += 1_999
    assert read(source) == ["1"]
    world.now += 1
    assert read(source) == ["1", "2", "3"]


def test_a_file_from_a_host_whose_clock_is_ahead_is_whole_after_a_while_of_ours(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: passed[0])
    source = world.source(settle=2_000)
    world.write("a", "1", at=NOW + 3_600_000)
    assert read(source) == []
    passed[0] += 1.9
    assert read(source) == []
    passed[0] += 0.1
    assert read(source) == ["1"]


def test_a_half_written_file_is_read_under_its_last_name(world: World) -> None:
    source = world.source()
    world.write(".a.tmp", '{"a":')
    assert read(source) == []
    world.write(".a.tmp", '{"a":1}').rename(world.inside / "a")
    assert read(source) == ['{"a":1}']


BROKEN = {
    "parquet": ("1.parquet", b"PAR1" + bytes(40)),
    "json": ("1.gz", gzip.compress(b"1\n" * 9_999)[:40]),
    "avro": ("1.avro", b"no Avro"),
}


@pytest.mark.parametrize("form", BROKEN)
def test_a_broken_file_is_one_record_that_says_so(world: World, form: str) -> None:
    name, data = BROKEN[form]
    world.inside.joinpath(name).write_bytes(data)
    source = world.source(format=form)
    assert source.latest() == {0: 1}
    (record,) = source.read({0: 0}, {0: 1}).to_pylist()
    assert record["value"] is None
    said = {h["key"]: h["value"].decode() for h in record["headers"]}
    assert said[FROM] in said[UNREADABLE]
    assert "cannot be read: " in said[UNREADABLE]
    for path in world.inside.iterdir():
        path.unlink()  # whoever throws it away harms no replay
    assert world.source(format=form).read({0: 0}, {0: 1}).to_pylist() == [record]


def test_a_file_that_may_not_be_read_is_no_broken_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.write("a", "1")

    def refuse(self: Folders, path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    with monkeypatch.context() as patch:
        patch.setattr(Folders, "open", refuse)
        with pytest.raises(SourceAway, match=r"'.*/in/a' cannot be read: .*Permission denied"):
            world.source().latest()
    source = world.source()
    (task,) = source.reads({0: 0}, source.latest())
    with monkeypatch.context() as patch:
        patch.setattr(Folders, "open", refuse)
        with pytest.raises(SourceAway, match="Permission denied"):
            list(task())
    assert read(source) == ["1"]


def test_long_files_are_read_from_any_record_on(world: World) -> None:
    lines = [json.dumps({"n": n}) for n in range(2 * CHUNK + 5)]
    world.write("a", *lines[:100], "", *lines[100:])
    packed = world.inside / "b.gz"
    packed.write_bytes(gzip.compress("\n".join(lines).encode()))
    source = world.source()
    end = source.latest()[0]
    assert end == 2 * len(lines)
    places = [(0, 3), (99, 101), (CHUNK - 1, CHUNK + 1), (CHUNK, end), (2 * CHUNK, 2 * CHUNK + 9)]
    for start, stop in places:
        assert read(source, start, stop) == (lines * 2)[start:stop]


def changes(world: World, what: str) -> None:
    path = world.inside / "b"
    match what:
        case "gone":
            path.unlink()
        case "longer":
            world.write("b", "2", "3")
        case _:
            world.write("b", "3", at=NOW)


CHANGED = {
    "gone": "is gone",
    "longer": "has 4 bytes, and had 2",
    "later": "was written to since it was found",
}


@pytest.mark.parametrize("what", CHANGED)
def test_a_file_that_changed_before_it_was_read_stops_the_pipeline(world: World, what: str) -> None:
    world.write("a", "1")
    world.write("b", "2")
    source = world.source()
    (task,) = source.reads({0: 0}, source.latest())
    changes(world, what)
    assert read(source, 0, 1) == ["1"]  # what is not of it
    for reading in (lambda: source.reads({0: 1}, {0: 2}), lambda: list(task())):
        with pytest.raises(SourceUnfit) as raised:
            reading()
        assert raised.value.message == f"source 's': {world.inside / 'b'} {CHANGED[what]}"
        assert raised.value.outage == "bad settings"


def test_a_file_that_changed_after_it_was_read_is_not_read_again(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.write("a", "1")
    source = world.source()
    assert read(source) == ["1"]
    world.write("a", "1", "2")
    with caplog.at_level(logging.WARNING):
        assert source.latest() == source.latest() == {0: 1}
    (warning,) = caplog.messages
    assert warning.endswith(
        "has changed since it was found; a file is read once: write another one"
    )


def test_a_file_that_grows_while_it_is_looked_at_is_not_whole(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, module = world.write("a", "1"), "kaflow_engine.connectors.files.source.source"

    def slow(*about: object) -> object:
        from kaflow_engine.connectors.files.source.contents import count

        found = count(*about)  # type: ignore[arg-type]
        path.write_text("1\n2\n")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(f"{module}.count", slow)
        assert world.source().latest() == {0: 0}
    assert read(world.source()) == ["1", "2"]


def test_what_is_wrong_with_a_folder_or_a_state(world: World) -> None:
    with pytest.raises(SourceUnfit, match="there is no folder '/nowhere'"):
        world.source(path="/nowhere").latest()
    world.write("a", "1")
    world.source().latest()
    with pytest.raises(SourceUnfit, match="has found files up to offset 1, and a batch reads up"):
        world.source().reads({0: 0}, {0: 2})
    (page,) = world.state.rglob("*.json")
    page.write_text("[{}]")
    with pytest.raises(Damaged, match=r"'sources/s/00000001\.json' is damaged"):
        world.source()


def shown(world: World, form: str) -> tuple[Column, ...] | None:
    params = world.params(format=form)
    return source_kind("files").sample(params, format_of("csv" if form == "csv" else "json"), {})


def test_the_first_records_show_the_columns(world: World) -> None:
    assert shown(world, "json") is None
    world.write("a")
    world.write("b", '{"id": 1, "u": "x"}', '{"id": 2.5}')
    assert shown(world, "json") == (Column("id", "DOUBLE"), Column("u", "VARCHAR"))
    world.inside.joinpath("0").write_bytes(b"no Parquet")
    for path in ("a", "b"):
        world.inside.joinpath(path).unlink()
    rows = pa.table({"id": [1], "s": [{"x": "y"}], "d": pa.array(["a"]).dictionary_encode()})
    pq.write_table(rows, world.inside / "c")
    found = shown(world, "parquet")
    assert found is not None
    assert found[:2] == (Column("id", "BIGINT"), Column("s", "STRUCT(x VARCHAR)"))
