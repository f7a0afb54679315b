"""Services that tests share: each starts at most once per run, on first use."""

import gc
import os
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from kaflow_engine.model.config import SparkConfig
from kaflow_engine.plugins import installed as plugins
from kaflow_engine.testing.services.broker import Broker
from kaflow_engine.testing.services.mariadb import MariaDBServer, server_program
from kaflow_engine.testing.services.mosquitto import Mosquitto
from kaflow_engine.testing.services.postgres import PostgresServer, server_programs
from kaflow_engine.testing.services.registry import SchemaRegistry
from tests.clickhouse_shim import ClickHouseShim
from tests.system import find_installed, find_program
from tests.turns import next_turn, part_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LONGEST = (
    "test_local_stack.py",
    "test_against_oracle.py",
    "test_killed.py",
    "test_live_killed.py",
    "test_live_changed.py",
    "test_cases_on_spark.py",
    "test_cluster.py",
    "test_crash_beside.py",
    "test_fences.py",
    "test_two_drivers.py",
    "test_kafka_pieces.py",
    "test_jvm.py",
    "test_checkpoints.py",
    "test_crash_points.py",
    "test_checkpoint_troubles.py",
    "test_run.py",
    "test_replicas.py",
    "test_history.py",
    "test_damaged_state.py",
    "test_processor.py",
    "test_tables.py",
    "test_stream.py",
    "test_table_topics.py",
    "test_run_avro.py",
    "test_backfill.py",
    "test_evolution.py",
    "test_checkpoints_on_spark.py",
    "test_readme.py",
    "test_weather_large.py",
    "test_troubles.py",
    "test_otlp.py",
    "test_error_texts.py",
    "test_dead_letters.py",
    "test_demo.py",
    "test_dags.py",
)
"""Files that take minutes begin first, so that no process waits long for another at the end."""

ENGINE = Path(__file__).parents[1] / "engine"

SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java options that halve the CPU time of a session that only runs small batches for minutes."""

os.environ.setdefault("KAFLOW__SPARK__CONF__spark_driver_extraJavaOptions", SHORT_LIVED)


def pytest_collection_finish() -> None:
    """Look for no garbage among the thousands of tests and modules that stay, seldom for more."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave tests to another run, and put the longest files first."""
    parts = {item: part_of(item) for item in items}
    later = next_turn({*parts.values()})
    if left := [item for item, part in parts.items() if part in later]:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if parts[item] not in later]
    rank = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path.name, len(rank)))


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """A Spark session with the settings of production, two tasks at a time."""
    from kaflow_engine.runtime.spark.jars import spark_kafka_jars
    from kaflow_engine.runtime.spark.java import find_java
    from kaflow_engine.runtime.spark.session import start_session  # it imports Spark

    # workers are new processes, which know nothing of pytest's own path
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ENGINE), os.environ.get("PYTHONPATH", "")])
    config = SparkConfig(conf={"spark.driver.extraJavaOptions": SHORT_LIVED})
    session = start_session(config, find_java(), spark_kafka_jars())
    yield session
    session.stop()


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """A Kafka broker; shared, so a test names its topics with `unique` or `topic_name`."""
    with Broker() as running:
        yield running


@pytest.fixture(scope="session")
def registry() -> Iterator[SchemaRegistry]:
    """A schema registry; shared, so a test names its subjects with `unique` or `topic_name`."""
    with SchemaRegistry() as running:
        yield running


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server; shared, so a test names its tables with `unique`."""
    find_installed("postgresql", server_programs)
    with PostgresServer() as running:
        yield running


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDBServer]:
    """A MariaDB server; shared, so a test names its tables with `unique`."""
    find_installed("mariadb-server-core", server_program)
    with MariaDBServer() as running:
        yield running


@pytest.fixture(scope="session")
def mosquitto() -> Iterator[Mosquitto]:
    """A broker of MQTT; shared, so a test names its topics with `unique`."""
    find_program("mosquitto")
    with Mosquitto() as running:
        yield running


@pytest.fixture(scope="session")
def clickhouse() -> Iterator[ClickHouseShim]:
    """ClickHouse's engine behind HTTP; shared, so a test names its tables with `unique`."""
    with ClickHouseShim() as running:
        yield running


@pytest.fixture
def unique() -> str:
    """A prefix that no other test has."""
    return f"t{uuid4().hex[:10]}"


@pytest.fixture
def topic_name(unique: str) -> str:
    """The name of a topic that does not exist yet."""
    return f"{unique}.topic"


FROZEN_PLUGIN, FROZEN_PLUGIN_2, FROZEN_PLUGIN_3 = (
    Path(__file__).parent / "fixtures" / "plugins" / f"version_{version}" for version in (1, 2, 3)
)


@pytest.fixture
def frozen_plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install the plugins that were frozen at versions of the contract."""
    for folder in (FROZEN_PLUGIN, FROZEN_PLUGIN_2, FROZEN_PLUGIN_3):
        monkeypatch.syspath_prepend(str(folder))
    plugins.forget_loaded()
    yield
    plugins.forget_loaded()


EXAMPLE_PLUGINS = Path(__file__).parent / "plugins"
"""A package with the plugins that examples of Streamling name."""


@pytest.fixture
def example_plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install them."""
    monkeypatch.syspath_prepend(str(EXAMPLE_PLUGINS))
    plugins.forget_loaded()
    yield
    plugins.forget_loaded()


OfferPlugins = Callable[[Mapping[str, Mapping[str, str]]], None]


@pytest.fixture
def offer_plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[OfferPlugins]:
    """Return what makes up installed packages: group, name, and `module:Class` of each kind."""

    def offer(kinds: Mapping[str, Mapping[str, str]]) -> None:
        found = {
            group: {name: EntryPoint(name, value, group) for name, value in named.items()}
            for group, named in kinds.items()
        }

        def installed(group: str) -> Mapping[str, EntryPoint]:
            return found.get(group, {})

        monkeypatch.setattr(plugins, "installed", installed)
        plugins.forget_loaded()

    yield offer
    plugins.forget_loaded()
