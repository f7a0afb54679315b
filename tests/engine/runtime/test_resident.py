"""A task that stays takes one batch after the other, and whatever ends it ends no batch after."""
# pyright: basic

import os
import signal
import tempfile
from types import SimpleNamespace

import pytest

from kaflow_engine.runtime.jobs import resident as jobs_resident
from kaflow_engine.runtime.jobs.resident import ResidentTask, resident_task

ENDS_S = 30
HERE = SimpleNamespace(sparkContext=None)


@pytest.fixture
def resident(spark):
    """The task of one pipeline."""
    found = ResidentTask(spark.sparkContext)
    yield found
    found.close()


def where():
    """What says which task runs it, and in which process."""

    def task():
        from pyspark import TaskContext

        yield TaskContext.get().taskAttemptId(), str(os.getpid()).encode()

    return task


def stay(resident):
    """What stands for the task that stays."""
    found = resident._stay
    assert found is not None
    return found


@pytest.mark.spark
def test_what_follows_soon_is_done_by_the_same_task(resident):
    first = resident.run(where())
    assert [resident.run(where()) for _ in range(5)] == [first] * 5
    assert resident.run(lambda: [(0, b"a"), (1, b"b" * 10**6)]) == [(0, b"a"), (1, b"b" * 10**6)]
    assert resident.run(lambda: []) == []


@pytest.mark.spark
def test_a_task_that_is_to_leave_ends_well(resident):
    ((first, _),) = resident.run(where())
    ended = stay(resident).ended
    resident.leave()
    ended.result(ENDS_S)
    assert resident.run(where())[0][0] != first


@pytest.mark.spark
def test_a_task_for_which_nothing_comes_leaves_and_another_takes_what_comes_late(resident):
    ((first, _),) = resident.run(where())
    stay(resident).ended.result(ENDS_S)
    assert resident.run(where())[0][0] != first


@pytest.mark.spark
def test_another_takes_its_place_from_time_to_time(resident, monkeypatch):
    monkeypatch.setattr(jobs_resident, "_MOST_S", 0.0)
    ((first, _),) = resident.run(where())
    ended = stay(resident).ended
    assert resident.run(where())[0][0] != first
    ended.result(ENDS_S)


@pytest.mark.spark
def test_what_goes_wrong_there_is_raised_here(resident):
    ((first, _),) = resident.run(where())
    with pytest.raises(Exception, match="ZeroDivisionError"):
        resident.run(lambda: [(0, bytes(1 // 0))])
    assert resident.run(where())[0][0] != first


@pytest.mark.spark
def test_a_worker_that_is_killed_as_it_waits_is_not_missed(resident):
    ((_, pid),) = resident.run(where())
    os.kill(int(pid), signal.SIGKILL)
    assert stay(resident).ended.exception(ENDS_S) is not None
    assert resident.run(where())[0][1] != pid


@pytest.mark.spark
def test_a_worker_that_is_killed_as_it_works_fails_the_batch(resident):
    with pytest.raises(Exception, match="Python worker"):
        resident.run(lambda: [(0, b"")] * os.kill(os.getpid(), signal.SIGKILL))
    assert len(resident.run(where())) == 1


@pytest.mark.parametrize(
    ("master", "pipelines", "stays"),
    [
        ("local[2]", 1, True),
        ("local[2]", 2, True),
        ("local[2]", 3, False),
        ("local", 1, True),
        ("local", 2, False),
        ("local-cluster[2,1,512]", 1, False),
        ("spark://host:7077", 1, False),
    ],
)
def test_where_a_task_may_stay(master, pipelines, stays):
    assert (resident_task(HERE, master, pipelines) is not None) == stays


def test_a_folder_whose_sockets_would_have_no_names(monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", "/tmp/" + "x" * 90)
    assert resident_task(HERE, "local[2]", 1) is None
