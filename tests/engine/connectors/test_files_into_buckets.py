"""Folders of buckets as outputs: the same promises as of local ones, without renames and locks."""

import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kaflow_engine.connectors.files.bucket import FolderOfBucket
from kaflow_engine.errors import StateError, TakenOver
from kaflow_engine.state.storage import bucket as storage
from kaflow_engine.state.storage.bucket import Bucket
from tests.acceptance.bucket_here import Store
from tests.engine.connectors.files_here import OWNER, FilesOfBucket

pytestmark = pytest.mark.services

NEWER = replace(OWNER, epoch=2)
FIRST, SECOND = "ab12-1-0000000001-0000.json", "ab12-1-0000000001-0001.json"


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with Store() as found:
        yield found


@pytest.fixture
def files(store: Store, tmp_path: Path) -> FilesOfBucket:
    return FilesOfBucket(store, f"{tmp_path.name}/out", {"n": "INTEGER"}, format="json")


def two(files: FilesOfBucket, owner: Any = OWNER) -> Any:
    """Return a batch of two files."""
    return files.batch(1, files.rows("(1)"), files.rows("(2)", slot=1), owner=owner)


def second(files: FilesOfBucket) -> Any:
    """Return that batch where the records of its first file were lost."""
    return replace(files.batch(1, files.rows("(2)", slot=1)), same_rows=False)


def test_no_one_sees_a_file_before_its_batch_is_committed(files: FilesOfBucket) -> None:
    opened = files.open()
    batch = two(files)
    assert (files.names(), files.uploads()) == ([], [FIRST, SECOND])
    assert not opened.delivered(1)
    opened.commit(batch)
    assert (files.names(), files.uploads()) == ([FIRST, SECOND], [])
    assert files.texts() == ['{"n":1}\n', '{"n":2}\n']
    assert opened.delivered(1)
    (held,) = files.outlet.look(files.output, pa.schema([]), OWNER)
    assert (held.state, held.batch, held.table) == ("ab12", 1, files.output.settings["folder"])


def test_a_task_is_sent_to_where_it_runs(files: FilesOfBucket) -> None:
    task = files.outlet.task(files.output, OWNER)
    assert pickle.loads(pickle.dumps(task)) == task


def test_folders_and_types_are_those_that_readers_know(store: Store, tmp_path: Path) -> None:
    columns = {"n": "BIGINT", "day": "DATE", "city": "VARCHAR", "tags": "VARCHAR[]"}
    said = {"partition": "day", "partition_by": ["city"]}
    files = FilesOfBucket(store, tmp_path.name, columns, **said)
    values = "(1, '2026-01-01', 'New York', ['a']), (2, NULL, 'a/b', NULL), (3, NULL, NULL, [])"
    files.open().commit(files.batch(1, files.rows(values)))
    assert files.names() == [
        "city=New York/_day=1970-01-01/ab12-1-0000000001-0000.parquet",
        "city=__HIVE_DEFAULT_PARTITION__/_day=1970-01-01/ab12-1-0000000001-0000.parquet",
        "city=a%2Fb/_day=1970-01-01/ab12-1-0000000001-0000.parquet",
    ]
    content = files.bucket.get(files.names()[0])
    assert content is not None
    assert pq.read_table(BytesIO(content[0])).column_names == ["n", "day", "tags"]
    rows = files.outlet.read(files.output, 0, 10)
    assert sorted(rows["n"].to_pylist()) == [1, 2, 3]
    assert set(rows["city"].to_pylist()) == {"New York", "a/b", None}
    assert files.outlet.read(files.output, 0, 1).num_rows == 1
    assert files.outlet.read(files.output, 2**50, 10).num_rows == 0
    assert duckdb.sql("SELECT count(*) FROM rows").fetchall() == [(3,)]


@pytest.mark.parametrize("form", ["json", "csv"])
def test_texts_are_read_back(store: Store, tmp_path: Path, form: str) -> None:
    files = FilesOfBucket(store, tmp_path.name, {"a": "VARCHAR", "n": "INTEGER"}, format=form)
    files.open().commit(files.batch(1, files.rows("('x, \"y\"', 1), (NULL, 2)")))
    found = files.outlet.read(files.output, 0, 10)
    assert found.to_pylist() == [{"a": 'x, "y"', "n": 1}, {"a": None, "n": 2}]


def test_a_large_file_has_several_parts(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "_PART", 5 << 20)
    bucket, content = store.bucket("large"), bytes(range(256)) * (12 << 12)
    staged = bucket.stage("a", content)
    assert len(staged.split(" ")) == 1 + 3
    assert bucket.get("a") is None
    assert bucket.complete("a", staged)
    found = bucket.get("a")
    assert found is not None
    assert found[0] == content
    empty = bucket.stage("b", b"")
    bucket.abort("b", empty)
    bucket.abort("b", empty)
    assert (bucket.complete("b", empty), bucket.get("b")) == (False, None)


@pytest.mark.parametrize("named", [0, 1])
def test_a_batch_that_is_cut_off_between_its_names(
    files: FilesOfBucket, monkeypatch: pytest.MonkeyPatch, named: int
) -> None:
    opened, batch, left = files.open(), two(files), iter([None] * named)
    complete = Bucket.complete

    def cut(self: Bucket, name: str, staged: str) -> bool:
        if next(left, "cut") == "cut":
            raise KeyboardInterrupt
        return complete(self, name, staged)

    with monkeypatch.context() as patched:
        patched.setattr(Bucket, "complete", cut)
        with pytest.raises(KeyboardInterrupt):
            opened.commit(batch)
    assert len(files.names()) == named
    again = files.open(NEWER)
    assert again.delivered(1)  # what is there must be finished as it was begun
    assert files.uploads() == []
    again.commit(two(files, NEWER))
    assert (files.texts(), files.uploads()) == (['{"n":1}\n', '{"n":2}\n'], [])


def test_a_batch_that_is_cut_off_before_its_ledger(
    files: FilesOfBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, batch = files.open(), two(files)
    with monkeypatch.context() as patched:
        patched.delattr(FolderOfBucket, "write_ledger")
        with pytest.raises(AttributeError):
            opened.commit(batch)
    again = files.open(NEWER)
    assert (again.delivered(1), files.names(), files.uploads()) == (False, [], [])
    again.commit(files.batch(1, files.rows("(7)"), owner=NEWER))  # it may be cut otherwise now
    assert files.texts() == ['{"n":7}\n']


def test_a_commit_that_is_tried_again_goes_on(files: FilesOfBucket) -> None:
    opened, batch = files.open(), two(files)
    opened.commit(batch)
    opened.commit(batch)
    opened.commit(two(files))
    assert files.texts() == ['{"n":1}\n', '{"n":2}\n']


def test_a_batch_that_lost_records_leaves_what_it_has_now(files: FilesOfBucket) -> None:
    opened = files.open()
    opened.commit(two(files))
    with pytest.raises(StateError, match=rf"has written 1 rows to '{FIRST}'"):
        opened.commit(replace(second(files), same_rows=True))
    opened.commit(second(files))
    assert files.names() == [SECOND]
    with pytest.raises(StateError, match="another copy of the state was run"):
        opened.commit(replace(second(files), mark="another"))


def test_files_that_were_taken_away_do_not_come_back(files: FilesOfBucket) -> None:
    opened = files.open()
    opened.commit(two(files))
    opened.commit(files.batch(2, files.rows("(3)")))
    files.bucket.delete([FIRST])
    opened.commit(two(files))
    assert files.names() == [SECOND, "ab12-1-0000000002-0000.json"]


def test_a_batch_without_rows_leaves_nothing(files: FilesOfBucket) -> None:
    opened = files.open()
    opened.commit(files.batch(1))
    assert (files.names(), opened.delivered(1)) == ([], False)


def test_another_state_takes_a_folder(files: FilesOfBucket) -> None:
    old = files.open()
    batch = two(files)
    later = replace(OWNER, state="cd34", epoch=2)
    files.outlet.hand_over(files.output, pa.schema([]), later)
    opened = files.open(later)
    with pytest.raises(TakenOver):
        old.commit(batch)
    opened.commit(files.batch(1, files.rows("(3)"), owner=later))
    assert files.names() == ["cd34-1-0000000001-0000.json"]


def begin_before(do: str, files: FilesOfBucket, patch: pytest.MonkeyPatch) -> None:
    """Let a newer run begin just before a run does something with its place."""
    inner: Callable[..., Any] = getattr(FolderOfBucket, do)

    def begun_first(self: FolderOfBucket, *given: Any) -> Any:
        patch.setattr(FolderOfBucket, do, inner)
        files.open(NEWER)
        return inner(self, *given)

    patch.setattr(FolderOfBucket, do, begun_first)


@pytest.mark.parametrize("moment", ["read_ledger", "write_ledger", "publish"])
def test_a_run_that_was_replaced_adds_nothing(
    files: FilesOfBucket, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Whenever it wakes up: it has read the ledger, or has even written that it will name files."""
    old = files.open()
    batch = two(files)
    begin_before(moment, files, monkeypatch)
    with pytest.raises(TakenOver, match="another run has taken over folder 's3://"):
        old.commit(batch)
    assert (files.names(), files.uploads()) == ([], [])
    with pytest.raises(TakenOver):
        files.open()


def test_a_run_begins_while_the_one_before_commits(
    files: FilesOfBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, batch = files.open(), two(files)
    write = FolderOfBucket.write_ledger

    def committed_first(self: FolderOfBucket, data: bytes, replacing: str | None) -> str:
        monkeypatch.setattr(FolderOfBucket, "write_ledger", write)
        old.commit(batch)
        return write(self, data, replacing)

    monkeypatch.setattr(FolderOfBucket, "write_ledger", committed_first)
    assert files.open(NEWER).delivered(1)
    assert files.names() == [FIRST, SECOND]


def test_uploads_of_others_stay(store: Store, files: FilesOfBucket) -> None:
    for name in ("other/ab12-1-0000000001-0000.json", "cd34-1-0000000001-0000.json", "x.bin"):
        files.bucket.stage(name, b"")
    left = sorted(files.uploads())
    opened = files.open()
    opened.commit(two(files))
    files.batch(2, files.rows("(3)"))  # a try of the next batch
    opened.commit(two(files))
    assert sorted(files.uploads()) == sorted([*left, "ab12-1-0000000002-0000.json"])
    files.open(NEWER)
    assert sorted(files.uploads()) == left
