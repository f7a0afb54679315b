"""The laws of sinks: rows are implementations, ours and made-up ones."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kaflow_engine.connectors.clickhouse.errors import ClickHouseAway, ClickHouseUnfit
from kaflow_engine.connectors.command.errors import CommandAway, CommandUnfit
from kaflow_engine.connectors.contract import Capabilities
from kaflow_engine.connectors.delta.errors import TableUnfit
from kaflow_engine.connectors.files.errors import FolderUnfit
from kaflow_engine.connectors.http.errors import HttpAway, HttpUnfit
from kaflow_engine.connectors.iceberg.errors import IcebergAway, IcebergUnfit
from kaflow_engine.connectors.kafka.errors import (
    BrokerAway,
    BrokerAwaySink,
    LoginRefused,
    LoginRefusedSink,
    RowRefused,
    TransactionTimeoutRefused,
)
from kaflow_engine.connectors.local.run_log import LocalRunLog
from kaflow_engine.connectors.postgres.errors import PostgresAway, PostgresUnfit
from kaflow_engine.connectors.sinks import SINKS, sink_kind
from kaflow_engine.errors import KaflowError, SinkAway, SinkError, SinkUnfit, TakenOver, UnknownName
from kaflow_engine.formats.schema_registry import RegistryAway
from kaflow_engine.state.storage.bucket import BucketAway
from kaflow_engine.testing.sink_laws import *  # noqa: F403
from kaflow_engine.testing.sink_laws import Subject
from tests.acceptance.bucket_here import Store
from tests.engine.connectors.made_up_here import (
    FolderSink,
    LedgerSink,
    folder_holdings,
    folder_values,
    ledger_holdings,
    ledger_values,
)
from tests.engine.connectors.subjects_here import (
    CommandSubject,
    DeltaSubject,
    FilesSubject,
    KafkaSubject,
    LettersSubject,
    MadeUpSubject,
    WebhookSubject,
)
from tests.engine.connectors.table_subjects_here import (
    BucketSubject,
    ClickHouseSubject,
    IcebergSubject,
    PostgresSubject,
)
from tests.receiver import Receiver, running_receiver


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with running_receiver() as found:
        yield found


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with Store() as found:
        yield found


@pytest.fixture(
    params=[
        pytest.param("kafka", marks=pytest.mark.kafka),
        pytest.param("postgres", marks=pytest.mark.services),
        pytest.param("clickhouse", marks=pytest.mark.services),
        pytest.param("clickhouse without tokens", marks=pytest.mark.services),
        "delta",
        "dead letters",
        "files",
        pytest.param("files in a bucket", marks=pytest.mark.services),
        "iceberg",
        "command",
        "command with a ledger",
        "a ledger",
        "a folder",
    ]
)
def subject(request: pytest.FixtureRequest, tmp_path: Path) -> Subject:
    match request.param:
        case "kafka":
            kafka = request.getfixturevalue("kafka")
            return KafkaSubject(kafka, request.getfixturevalue("unique"))
        case "postgres":
            server = request.getfixturevalue("postgres")
            return PostgresSubject(server.url, request.getfixturevalue("unique"))
        case "clickhouse" | "clickhouse without tokens":
            server = request.getfixturevalue("clickhouse")
            knows = request.param == "clickhouse"
            return ClickHouseSubject(server, request.getfixturevalue("unique"), knows)
        case "delta":
            return DeltaSubject(tmp_path)
        case "dead letters":
            return LettersSubject(tmp_path, LocalRunLog(tmp_path / "runs", "p"))
        case "webhook":
            return WebhookSubject(request.getfixturevalue("receiver"))
        case "command":
            return CommandSubject(tmp_path, None)
        case "command with a ledger":
            return CommandSubject(tmp_path, "shop.ledger")
        case "iceberg":
            return IcebergSubject(tmp_path)
        case "files":
            return FilesSubject(tmp_path)
        case "files in a bucket":
            return BucketSubject(request.getfixturevalue("store"), tmp_path.name)
        case "a ledger":
            path = tmp_path / "ledger.db"
            return MadeUpSubject(path, LedgerSink, "before_commit", ledger_values, ledger_holdings)
        case _:
            path = tmp_path / "folder"
            return MadeUpSubject(path, FolderSink, "files_written", folder_values, folder_holdings)


@pytest.mark.parametrize("name", sorted(SINKS))
@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
def test_promises_have_reasons(name: str, delivery: Any) -> None:
    found = sink_kind(name).capabilities(delivery, {})
    assert isinstance(found, Capabilities)
    assert found.accepts
    assert found.reason
    keeps = name not in ("blackhole", "command", "console", "webhook")
    assert not keeps or delivery == "at_least_once" or found.guarantee == "exactly_once"


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (BrokerAway("x"), "retry"),
        (RegistryAway("x"), "retry"),
        (BucketAway("x"), "retry"),
        (HttpAway("x"), "retry"),
        (HttpUnfit("x"), "bad settings"),
        (BrokerAwaySink("x"), "retry"),
        (RowRefused("x"), "stop"),
        (LoginRefused("x"), "bad settings"),
        (LoginRefusedSink("x"), "bad settings"),
        (TransactionTimeoutRefused("x"), "bad settings"),
        (TableUnfit("x"), "bad settings"),
        (FolderUnfit("x"), "bad settings"),
        (CommandAway("x"), "retry"),
        (CommandUnfit("x"), "bad settings"),
        (SinkAway("x"), "retry"),
        (SinkUnfit("x"), "bad settings"),
        (IcebergAway("x"), "retry"),
        (IcebergUnfit("x"), "bad settings"),
        (PostgresAway("x"), "retry"),
        (ClickHouseAway("x"), "retry"),
        (ClickHouseUnfit("x"), "bad settings"),
        (PostgresUnfit("x"), "bad settings"),
        (TakenOver("x"), None),
        (SinkError("the broker is away"), None),  # its class decides, not its words
    ],
)
def test_the_class_of_an_error_says_what_it_calls_for(
    error: KaflowError, answer: str | None
) -> None:
    assert error.outage == answer


def test_an_unknown_kind_of_sink_lists_what_there_is() -> None:
    with pytest.raises(UnknownName, match="unknown sink 'kafca'") as caught:
        sink_kind("kafca")
    assert caught.value.hint == "did you mean 'kafka'?"
