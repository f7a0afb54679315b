"""A Spark standalone cluster: one to three workers, and workers that go (KS30).

Two workers only with `KAFLOW_KILLS=all`.
"""

import os
import signal

import pytest

from kaflow_engine.testing.services.broker import Broker
from kaflow_engine.testing.services.cluster import Cluster
from kaflow_engine.testing.services.processes import look
from tests.acceptance.cluster_driver import Driver, kill
from tests.acceptance.crash_pipeline import create_outputs, delivered, load_topics, log_of
from tests.acceptance.kills import ALL

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.services]

EVENTS = 700
WORKERS = (1, 2, 3) if ALL else (1, 3)
LOCAL = "local[2]"


@pytest.fixture(scope="module")
def kafka():
    """A broker with the input topics."""
    with Broker() as running:
        load_topics(running.settings, "in", EVENTS)
        yield running


@pytest.fixture(scope="module")
def driver(kafka, tmp_path_factory):
    """A driver, and a cluster with one worker, to which tests add others."""
    with (
        Cluster() as cluster,
        Driver(kafka, cluster, tmp_path_factory.mktemp("state")) as running,
    ):
        yield running


@pytest.fixture(scope="module")
def results(kafka, driver):
    """What one run after the other has done: without a cluster, and with one to three workers."""

    def result(name, master):
        create_outputs(kafka.settings, name)
        driver.begin(name, master)
        driver.finish()
        return delivered(kafka.settings, name, log_of(driver.path, name))

    found, there = {0: result("on-0", LOCAL)}, 1
    for workers in WORKERS:
        while there < workers:
            driver.grow()
            there += 1
        found[workers] = result(f"on-{workers}", driver.cluster.url)
    return found


@pytest.mark.parametrize("workers", WORKERS)
def test_any_number_of_workers_gives_the_same_rows(results, workers):
    assert results[workers] == results[0]
    assert results[0].counters["emitted"] > EVENTS * 0.9
    assert results[0].letters


def test_on_a_cluster_only_the_log_and_snapshots_are_shared(results, driver):
    assert (driver.path / "on-0/copies").is_dir()
    assert not (driver.path / "on-3/copies").exists()
    assert list(driver.path.glob("on-3/snapshots/*/manifest.json"))


def test_executors_and_workers_may_go_or_hang(results, kafka, driver):
    create_outputs(kafka.settings, "troubled")
    driver.begin("troubled", driver.cluster.url)

    _, executor, task = driver.stop_at("rows_produced")
    kill(executor, task)
    driver.go_on()

    worker, executor, task = driver.stop_at("changes_written")
    kill(worker, executor, task)
    driver.go_on()

    worker, executor, sleeper = driver.stop_at("before_commit")
    for pid in (worker, executor):
        os.kill(pid, signal.SIGSTOP)  # as on a host that hangs
    driver.go_on()
    for pid in (sleeper, executor, worker):
        os.kill(pid, signal.SIGCONT)
    driver.finish()

    log = log_of(driver.path, "troubled")
    assert delivered(kafka.settings, "troubled", log) == results[0]
    assert log.last_commit().epoch > 3  # each trouble made the same process begin again
    assert len(driver.cluster.workers) == 2


def test_executors_and_their_tasks_end_with_the_driver(results, driver):
    left = [*driver.cluster.executors(), *driver.tasks()]
    assert left
    driver.kill()
    driver.until(lambda: all(look(pid).ended for pid in left), "all of them to end")
    assert not driver.cluster.executors()
