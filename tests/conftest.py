"""Services that tests share: each starts at most once per run, on first use."""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from kaflow_engine.testing.broker import Broker
from kaflow_engine.testing.registry import SchemaRegistry


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


@pytest.fixture
def unique() -> str:
    """A prefix that no other test has."""
    return f"t{uuid4().hex[:10]}"


@pytest.fixture
def topic_name(unique: str) -> str:
    """The name of a topic that does not exist yet."""
    return f"{unique}.topic"
