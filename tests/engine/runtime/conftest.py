"""One Spark session for all tests of this package."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kaflow_engine.model.config import SparkConfig
from kaflow_engine.runtime.jars import spark_kafka_jars
from kaflow_engine.runtime.java import find_java
from kaflow_engine.runtime.session import start_session

ENGINE = Path(__file__).parents[3] / "engine"


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session with the settings of production, two tasks at a time."""
    # workers are new processes, which know nothing of pytest's own path
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ENGINE), os.environ.get("PYTHONPATH", "")])
    session = start_session(SparkConfig(), find_java(), spark_kafka_jars())
    yield session
    session.stop()
