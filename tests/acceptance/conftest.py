"""What tests share that crash runs without Spark: one name is one run, whichever file it is in."""

from dataclasses import replace
from pathlib import Path

import pytest

from kaflow_engine.testing.services.broker import Broker
from tests.acceptance.bucket_here import Store
from tests.acceptance.crash_here import Forks, Order
from tests.acceptance.crash_kinds import Outputs
from tests.acceptance.crash_pipeline import create_outputs, delivered, load_topics, log_of
from tests.acceptance.killed_files import FileRuns
from tests.acceptance.machines import MOST, Machines

EVENTS = 240


@pytest.fixture(scope="session")
def crash_broker():
    """A broker beside that of other tests, because it is restarted."""
    with Broker() as running:
        load_topics(running.settings, "in", EVENTS)
        yield running


@pytest.fixture(scope="session")
def forks():
    """Runs pipelines in forked processes."""
    with Forks() as found:
        yield found


@pytest.fixture(scope="session")
def order(crash_broker, tmp_path_factory):
    """A run in peace, of which tests make others."""
    path = tmp_path_factory.mktemp("crashes")
    return Order(name="clean", inputs="in", broker=crash_broker.bootstrap, path=str(path))


@pytest.fixture(scope="module")
def file_runs(forks, order, tmp_path_factory):
    """Makes runs of a file, of what writes that."""
    folder = tmp_path_factory.mktemp("files")
    return lambda write: FileRuns(forks=forks, order=order, folder=folder, write=write)


@pytest.fixture(scope="session")
def peace(crash_broker, forks, order):
    """What a run in peace does."""
    create_outputs(crash_broker.settings, order.name)
    (end,) = forks.run([order])
    assert (end.how, end.said) == ("ended", "")
    found = delivered(crash_broker.settings, order.name, log_of(Path(order.path), order.name))
    assert found.counters["emitted"] > 200
    assert len(found.letters) > 5
    return found


@pytest.fixture(scope="session")
def outputs(crash_broker, forks, order, request):
    """Outputs of each kind; systems are started when they are needed."""
    folder = f"{order.path}/iceberg"
    catalog = {"uri": f"sqlite:///{order.path}/catalog.db", "warehouse": folder}
    systems = {
        "clickhouse": lambda: request.getfixturevalue("clickhouse").connection,
        "iceberg": lambda: catalog,
        "files": lambda: {"endpoint": request.getfixturevalue("bucket_of_files").endpoint},
    }
    return Outputs(crash_broker, forks, order, systems)


@pytest.fixture(scope="session")
def bucket_of_files():
    """A bucket that runs write files to."""
    with Store() as found:
        yield found


@pytest.fixture(scope="module")
def bucket():
    """A bucket of the file, because a test of another may have the same name for its run."""
    with Store() as found:
        yield found


@pytest.fixture(scope="module")
def small(order, bucket):
    """Small batches, so that there are many, with a checkpoint whenever the last one is written."""
    return replace(order, most=MOST, bucket=bucket.endpoint, snapshots="1ms")


@pytest.fixture(scope="session")
def machines(crash_broker, forks, order):
    return Machines(crash_broker, forks, Path(order.path))


@pytest.fixture(scope="session")
def unbroken(machines, order):
    """What a run with the same cuts does, whose machine stays."""
    alone = replace(order, name="unbroken", most=MOST)
    create_outputs(machines.broker.settings, alone.name)
    (end,) = machines.run([alone])
    assert (end.how, end.said) == ("ended", "")
    return machines.delivered(alone)
