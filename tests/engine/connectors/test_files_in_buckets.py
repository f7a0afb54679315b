"""Files of a bucket as a source: the same rules, in a store of objects."""

import pickle
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kaflow_engine.connectors.files.source import source as files
from kaflow_engine.connectors.files.source.source import FilesSource
from kaflow_engine.connectors.sources.contract import SourcePlace
from kaflow_engine.connectors.sources.kinds import source_kind
from kaflow_engine.errors import SourceAway, SourceUnfit
from kaflow_engine.flow.origins.files import FilesParams
from kaflow_engine.flow.records import RECORDS
from kaflow_engine.formats.contract import format_of
from kaflow_engine.model.columns import Column
from kaflow_engine.model.letters import UNREADABLE
from kaflow_engine.runtime.clock.batch_clock import wall_clock
from kaflow_engine.state.storage.bucket import Bucket
from kaflow_engine.state.storage.store import LocalStore
from tests.acceptance.bucket_here import KEYS, NAME, Store

pytestmark = pytest.mark.slow

PARAMS = FilesParams(path=f"s3://{NAME}/in", format="json", header=False, settle=0)


@pytest.fixture(autouse=True)
def _looks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_SHARE", 0)


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with Store() as found:
        yield found


@pytest.fixture
def objects(store: Store, tmp_path: Path) -> Bucket:
    return store.bucket(tmp_path.name)


def source(store: Store, path: Path, **more: object) -> FilesSource:
    params = replace(PARAMS, path=f"s3://{NAME}/{path.name}/in", **more)  # pyright: ignore[reportArgumentType]  # of the test
    connection = {**KEYS, "endpoint": store.endpoint}
    place = SourcePlace(
        name="s", store=LocalStore(path), journal=path, clock=wall_clock, connection=connection
    )
    return FilesSource(params, place)


def read(found: FilesSource) -> list[bytes | None]:
    end = found.latest()
    batches = [
        batch
        for each in found.reads({0: 0}, end)
        for batch in pickle.loads(pickle.dumps(each))()  # as tasks get it
    ]
    return pa.Table.from_batches(batches, schema=RECORDS)["value"].to_pylist()


def test_objects_are_read_once_in_the_order_of_their_names(
    store: Store, objects: Bucket, tmp_path: Path
) -> None:
    found = source(store, tmp_path)
    assert read(found) == []
    objects.put("in/b", b"2\n3\n", None)
    objects.put("in/a/deep", b"1\n", None)
    objects.put("in/_tmp/x", b"no\n", None)
    objects.put("other", b"no\n", None)
    assert read(found) == [b"1", b"2", b"3"]
    objects.put("in/0", b"4", None)
    assert read(found) == read(source(store, tmp_path)) == [b"1", b"2", b"3", b"4"]
    assert "any" not in repr(found.reads({0: 0}, {0: 1}))


def test_parquet_and_what_is_broken(store: Store, objects: Bucket, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": list(range(100))}), tmp_path / "a", row_group_size=10)
    objects.put("in/a.parquet", (tmp_path / "a").read_bytes(), None)
    objects.put("in/b.parquet", b"PAR1 and no more", None)
    found = source(store, tmp_path, format="parquet")
    values = read(found)
    assert values == [*(b'{"a":%d}' % n for n in range(100)), None]
    (record,) = found.read({0: 100}, {0: 101}).to_pylist()
    said = {h["key"]: h["value"].decode() for h in record["headers"]}
    assert "/in/b.parquet cannot be read: " in said[UNREADABLE]
    some = found.read({0: 25}, {0: 28})["value"].to_pylist()
    assert some == [b'{"a":25}', b'{"a":26}', b'{"a":27}']
    shown = source_kind("files").sample(
        replace(PARAMS, path=f"s3://{NAME}/{tmp_path.name}/in/a*", format="parquet"),
        format_of("json"),
        {**KEYS, "endpoint": store.endpoint},
    )
    assert shown == (Column("a", "BIGINT"),)


def test_an_object_that_changed_or_is_gone(store: Store, objects: Bucket, tmp_path: Path) -> None:
    objects.put("in/a", b"1\n", None)
    found = source(store, tmp_path)
    end = found.latest()
    objects.delete(["in/a"])
    with pytest.raises(SourceUnfit, match="/in/a is gone"):
        found.reads({0: 0}, end)
    objects.put("in/a", b"1\n2\n", None)
    with pytest.raises(SourceUnfit, match="/in/a has 4 bytes, and had 2"):
        found.reads({0: 0}, end)


def test_a_store_that_does_not_answer_is_an_outage(store: Store, tmp_path: Path) -> None:
    place = SourcePlace(
        name="s",
        store=LocalStore(tmp_path),
        journal=tmp_path,
        clock=wall_clock,
        connection={**KEYS, "endpoint": store.endpoint},
    )
    with pytest.raises(SourceUnfit, match="there is no bucket 'nowhere'"):
        FilesSource(replace(PARAMS, path="s3://nowhere/in"), place).latest()
    gone = replace(place, connection={**KEYS, "endpoint": "http://127.0.0.1:1"})
    with pytest.raises(SourceAway) as raised:
        FilesSource(PARAMS, gone).latest()
    assert raised.value.outage == "retry"
