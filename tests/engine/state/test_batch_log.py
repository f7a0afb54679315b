import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from kaflow_engine.errors import StateError
from kaflow_engine.state.log.batch_log import (
    BatchLog,
    BatchRecord,
    CommitRecord,
    StateRecord,
    plan_mark,
)
from kaflow_engine.state.log.changes import ChangeFile
from kaflow_engine.state.storage.store import Damaged, LocalStore


@pytest.fixture
def log(tmp_path: Path, record: StateRecord) -> BatchLog:
    log = BatchLog(LocalStore(tmp_path))
    assert log.load_state() is None
    log.create_state(record)
    return log


def again(log: BatchLog) -> BatchLog:
    return BatchLog(log.store)


def test_records_are_read_as_they_were_written(
    log: BatchLog, record: StateRecord, batch: BatchRecord, commit: CommitRecord
):
    changed = replace(
        commit, changes={"0-0": ChangeFile("changes/1/0-0.1.arrow", "00", 1), "0-1": None}
    )
    begun, done = log.begin(batch), log.commit(changed)
    assert begun == replace(batch, generation=1)
    assert again(log).load_state() == record
    assert again(log).load_batch(1) == begun
    assert again(log).load_commit(1) == again(log).last_commit() == done


def test_files_have_the_documented_members(log: BatchLog, batch: BatchRecord, commit: CommitRecord):
    log.begin(batch)
    log.commit(replace(commit, changes={"0-0": ChangeFile("f", "00", 1), "0-1": None}))
    members = {name: json.loads(log.store.get(name)) for name in log.store.list("")}
    assert set(members) == {"state.json", "batches/1.json", "commits/1.json"}
    begun = members["batches/1.json"]
    assert begun["ranges"] == {"t": {"0": [5, 9]}}
    assert begun["read_to_end"] == [["t", 0]]
    assert (begun["state_id"], begun["generation"]) == ("s1", 1)
    assert members["commits/1.json"]["changes"] == {
        "0-0": {"file": "f", "sha256": "00", "rows": 1},
        "0-1": None,
    }


TIMES: list[tuple[dict[int, int], object]] = [
    ({}, None),
    ({0: 7}, 7),
    ({0: 7, 2: 9}, {"0": 7, "2": 9}),
    ({2: 9}, {"2": 9}),
]


@pytest.mark.parametrize(("times", "stored"), TIMES)
def test_times_are_stored_as_before_where_chain_0_is_the_only_one(
    log: BatchLog,
    batch: BatchRecord,
    commit: CommitRecord,
    times: dict[int, int],
    stored: object,
):
    log.begin(replace(batch, watermark=times))
    log.commit(replace(commit, next_due=times))
    assert json.loads(log.store.get("batches/1.json"))["watermark"] == stored
    assert json.loads(log.store.get("commits/1.json"))["next_due"] == stored
    assert again(log).load_batch(1).watermark == again(log).load_commit(1).next_due == times


def test_a_second_writer_is_refused(
    log: BatchLog, record: StateRecord, batch: BatchRecord, commit: CommitRecord
):
    other = again(log)
    with pytest.raises(StateError, match=r"another run has written 'state\.json'"):
        other.create_state(record)
    log.begin(batch)
    with pytest.raises(StateError, match=r"another run has written 'batches/1\.json'"):
        other.begin(replace(batch, epoch=2))
    log.commit(commit)
    with pytest.raises(StateError, match=r"another run has written 'commits/1\.json'"):
        other.commit(replace(commit, epoch=2))
    assert log.load_batch(1).epoch == 1


def test_an_open_batch_is_found_and_committed_by_a_later_epoch(
    log: BatchLog, batch: BatchRecord, commit: CommitRecord
):
    assert log.open_batch() is None
    assert log.last_commit() is None
    assert log.next_number() == 1
    begun = log.begin(batch)
    assert again(log).open_batch() == begun
    again(log).commit(replace(commit, epoch=2))
    assert log.open_batch() is None
    assert log.next_number() == 2
    assert log.load_batch(1).epoch == 1
    assert log.load_commit(1).epoch == 2


def test_a_gap_in_the_log_is_damage(log: BatchLog, batch: BatchRecord, commit: CommitRecord):
    for number in (1, 2, 3):
        log.begin(replace(batch, number=number))
        log.commit(replace(commit, number=number))
    log.store.delete("batches/3.json")
    with pytest.raises(Damaged, match="has batch 2, but its last commit is 3"):
        log.open_batch()
    for number in (1, 2, 3):
        log.store.delete(f"commits/{number}.json")
    with pytest.raises(Damaged, match="has batch 2, but its last commit is 0"):
        log.open_batch()


RECORDS = ("state.json", "batches/1.json", "commits/1.json")
HARMS = ("torn", "flipped", "empty", "list")
PLAN = '{"steps": 1}'
MARK = plan_mark(PLAN)


@pytest.mark.parametrize(
    ("name", "harm"),
    [*product((*RECORDS, f"plans/{MARK}.json"), HARMS)],
)
def test_a_damaged_file_is_named(
    log: BatchLog, batch: BatchRecord, commit: CommitRecord, name: str, harm: str
):
    log.begin(batch)
    log.commit(commit)
    log.save_plan(MARK, PLAN)
    whole = log.store.get(name)
    harmed = {"torn": whole[:-3], "flipped": whole.replace(b"1", b"7"), "empty": b"", "list": b"[]"}
    log.store.put(name, harmed[harm])

    def read_all() -> None:
        fresh = again(log)
        fresh.load_state()
        fresh.load_batch(1)
        fresh.load_commit(1)
        fresh.load_plan(MARK)

    with pytest.raises(Damaged, match=f"'{name}' is damaged") as error:
        read_all()
    assert error.value.hint


def test_files_of_another_state_are_refused(log: BatchLog, record: StateRecord, batch: BatchRecord):
    log.begin(batch)
    log.store.delete("state.json")
    fresh = again(log)
    fresh.create_state(replace(record, state_id="s2"))
    with pytest.raises(Damaged, match="belongs to another state"):
        fresh.load_batch(1)


def test_a_new_generation_reads_the_older_one(
    log: BatchLog, record: StateRecord, batch: BatchRecord, commit: CommitRecord
):
    log.begin(batch)
    log.commit(commit)
    log.replace_state(replace(record, generation=2))
    fresh = again(log)
    last = fresh.last_commit()
    assert last is not None
    assert last.generation == 1
    assert fresh.begin(replace(batch, number=2)).generation == 2
    with pytest.raises(StateError, match="only the state that is there"):
        log.replace_state(replace(record, state_id="s2"))


def test_a_plan_is_kept_once(log: BatchLog):
    log.save_plan(MARK, PLAN)
    log.save_plan(MARK, PLAN)
    assert log.load_plan(MARK) == PLAN
    with pytest.raises(Damaged, match="not the plan of that fingerprint"):
        log.save_plan(MARK, "[]")


def test_pruning_keeps_what_is_named(log: BatchLog, batch: BatchRecord, commit: CommitRecord):
    for number in range(1, 13):
        log.save_plan(f"p{number}", "{}")
        log.begin(replace(batch, number=number, plan=f"p{number}"))
        log.store.put(f"changes/{number}/0-0.1.arrow", b"")
        log.commit(replace(commit, number=number))
    log.prune(11)
    assert log.store.list("") == [
        "batches/11.json",
        "batches/12.json",
        "changes/11/0-0.1.arrow",
        "changes/12/0-0.1.arrow",
        "commits/11.json",
        "commits/12.json",
        "plans/p1.json",
        "plans/p11.json",
        "plans/p12.json",
        "state.json",
    ]
    assert log.next_number() == 13


def test_batches_need_a_state_and_a_number(tmp_path: Path, batch: BatchRecord):
    log = BatchLog(LocalStore(tmp_path))
    with pytest.raises(StateError, match="there is no state here"):
        log.begin(batch)
    with pytest.raises(ValueError, match="numbered from 1"):
        log.begin(replace(batch, number=0))
