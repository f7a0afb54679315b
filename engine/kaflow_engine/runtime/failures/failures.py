"""Classifies exceptions of Spark and its workers: which can be retried, and what they mean."""

import re
import traceback
from collections.abc import Iterator, Mapping
from errno import ENOTCONN
from sys import version_info

from kaflow_engine.connectors.clickhouse.errors import ClickHouseAway, ClickHouseUnfit
from kaflow_engine.connectors.delta.errors import TableUnfit
from kaflow_engine.connectors.files.errors import FolderUnfit
from kaflow_engine.connectors.http.errors import HttpAway, HttpUnfit
from kaflow_engine.connectors.iceberg.errors import IcebergAway, IcebergUnfit
from kaflow_engine.connectors.kafka.admin import MissingTopic
from kaflow_engine.connectors.kafka.errors import (
    BrokerAway,
    BrokerAwaySink,
    LoginRefused,
    LoginRefusedSink,
    OutOfTime,
    RowRefused,
    TransactionTimeoutRefused,
)
from kaflow_engine.connectors.kafka.permissions import NotPermitted
from kaflow_engine.connectors.kafka.topics import TooFewBrokers
from kaflow_engine.connectors.postgres.errors import PostgresAway, PostgresUnfit
from kaflow_engine.errors import (
    DrainIncomplete,
    KaflowError,
    LimitReached,
    LossSuspected,
    ModelError,
    NotSettled,
    RetriableError,
    RunError,
    SinkAway,
    SinkError,
    SinkUnfit,
    SourceAway,
    SourceError,
    SourceUnfit,
    SqlError,
    StateError,
    StateHeld,
    TakenOver,
    UserError,
    causes_of,
)
from kaflow_engine.formats.schema_changes import SchemaChanged
from kaflow_engine.formats.schema_registry import RegistryAway
from kaflow_engine.operators.row_errors.dead_letters import RecordRefused
from kaflow_engine.plugins.transforms import TransformAway, TransformUnfit
from kaflow_engine.runtime.clock.batch_clock import ClockWrong
from kaflow_engine.runtime.failures.error_wire import SECRET, TaskFailed, pack, unpack
from kaflow_engine.state.storage.bucket import BucketAway, ObjectChanged
from kaflow_engine.state.storage.store import Damaged, Foreign, NameMissing, NameTaken

_EXCEPTION = re.compile(r"(?:[a-z]\w*\.)+([A-Z]\w*(?:Exception|Error))(?:: (.*))?")
_SOURCE = re.compile(r"org\.apache\.kafka|KafkaException|\bKAFKA_|kafka010")
_LOST = re.compile(
    r"KAFKA_DATA_LOSS|OffsetOutOfRange|data may have been lost|offset was changed from"
)
_SPARK = re.compile(
    r"py4j|Py4J|pyspark|org\.apache\.spark|Java side|Connection refused|\[[A-Z_.]+\]"
)
_LOGIN = re.compile(r"SaslAuthenticationException|SslAuthenticationException|SSLHandshake")
_AWAY = re.compile(r"TimeoutException|DisconnectException|NetworkException|BrokerNotAvailable")
_FULL = re.compile(r"No space left on device|Disk quota exceeded")
_JVM_GONE = re.compile(
    r"Answer from Java side is empty|Connection refused|Py4JNetworkError|SparkContext was shut down"
    r"|An error occurred while calling [\w:.$]*\w$",
    re.MULTILINE,
)
_STOPPED = re.compile(r"stopped SparkContext|LiveListenerBus is stopped|SparkContext was shut down")
_EXECUTOR_GONE = re.compile(r"ExecutorLostFailure|FetchFailed|MetadataFetchFailed")
_NO_PYTHON = re.compile(r'Cannot run program \\?"([^"\\]+)|PYTHON_VERSION_MISMATCH')
_NO_MODULE = re.compile(r"No module named '([\w.]+)'")


class DataLost(SourceError):
    """Records that the pipeline still needs are gone from their topic."""


class SparkEnded(RunError):
    """Spark's application or its JVM is gone; a new session can go on."""


class ClusterAway(RunError):
    """The cluster does not answer, or gives nothing to run on."""


class ExecutorsUnfit(RunError):
    """What tasks need is not there where executors run; trying again does not bring it."""


class ExecutorLost(RunError):
    """An executor went in the middle of a batch; what it did is done again elsewhere."""


_KINDS: Mapping[str, type[KaflowError]] = {
    kind.__name__: kind
    for kind in (
        *(ModelError, SqlError, RunError, SourceError, SinkError, LimitReached, StateError),
        *(SinkAway, SinkUnfit, SourceAway, SourceUnfit, RetriableError, UserError),
        *(TakenOver, DrainIncomplete, DataLost, LossSuspected, TaskFailed, RecordRefused),
        *(BrokerAway, BrokerAwaySink, LoginRefused, LoginRefusedSink, NotPermitted),
        *(RowRefused, MissingTopic),
        *(RegistryAway, SchemaChanged, BucketAway, ObjectChanged, NameTaken, NameMissing),
        *(Damaged, Foreign, SparkEnded, ClusterAway, ExecutorsUnfit, ExecutorLost),
        *(ClockWrong, StateHeld, NotSettled, TooFewBrokers, OutOfTime, TransactionTimeoutRefused),
        *(TableUnfit, PostgresAway, PostgresUnfit, FolderUnfit, HttpAway, HttpUnfit),
        *(ClickHouseAway, ClickHouseUnfit, IcebergAway, IcebergUnfit),
        *(TransformAway, TransformUnfit),
    )
}
"""What a task may say of itself; an error of another class arrives as one it derives from."""


def carried(error: BaseException, secret: str = SECRET) -> RuntimeError:
    """Return what a task raises so that the driver gets `error` back.

    Args:
        error: Whatever went wrong.
        secret: Of the driver.
    """
    if not isinstance(error, KaflowError):
        error = _unforeseen(error)
    return RuntimeError(pack(error, _KINDS, secret))


def _unforeseen(error: BaseException) -> KaflowError:
    text = str(error).strip().partition("\n")[0]
    said = f"{type(error).__name__}: {text}"
    away = isinstance(error, ConnectionError | TimeoutError | InterruptedError)
    if away or (isinstance(error, OSError) and error.errno == ENOTCONN):
        found: KaflowError = RetriableError(f"a connection failed: {said}")
    else:
        details = "".join(traceback.format_exception(error))
        found = TaskFailed(f"a task failed: {said}", details)
    found.causes = causes_of(error)
    return found


def is_internal(error: BaseException) -> bool:
    """Tell whether no one foresaw an error: it says nothing about what an author wrote."""
    return isinstance(error, TaskFailed) or not isinstance(error, KaflowError)


def to_error(error: BaseException, doing: str = "running a batch") -> KaflowError:
    """Return the KaflowError behind whatever a Spark call raised."""
    if isinstance(error, KaflowError):
        return error
    text = "\n".join(_texts(error))
    if original := unpack(text, _KINDS):
        return original
    reason = _reason(text)
    if not _SPARK.search(text):
        return TaskFailed(f"{doing} failed: {type(error).__name__}: {error}", text)
    if found := _NO_PYTHON.search(text):
        lacking = f"no '{found[1]}'" if found[1] else "another version of Python than the driver"
        return ExecutorsUnfit(
            f"executors have {lacking}",
            hint="name their Python in 'spark.conf: {spark.pyspark.python: …}'; its minor version "
            f"must be {version_info.major}.{version_info.minor}, as on the driver",
        )
    if found := _NO_MODULE.search(text):
        return ExecutorsUnfit(
            f"the Python of executors lacks the module '{found[1]}'",
            hint="install kaflow on every host, or send it along: see 'Python' in docs/cluster.md",
        )
    if _EXECUTOR_GONE.search(text):
        return ExecutorLost(f"an executor was lost while {doing}")
    if _STOPPED.search(text):
        return SparkEnded(
            f"Spark's application ended while {doing}",
            hint="where a cluster ended it, the logs of its master, or of the executors, say why",
        )
    if _JVM_GONE.search(text):
        return SparkEnded(
            f"Spark's JVM ended while {doing}",
            hint="it may have run out of memory: raise 'spark.conf: {spark.driver.memory: …}'",
        )
    if _FULL.search(text):
        return StateError(
            f"a disk is full while {doing}",
            hint="make room for 'state.rocksdb.path', and for Spark's 'spark.local.dir'",
        )
    if _LOST.search(text):
        return LossSuspected(f"records were lost in Kafka while {doing}: {reason}")
    if _SOURCE.search(text):
        if _LOGIN.search(text):
            return LoginRefused(
                f"the broker refused the login or its certificate while {doing}",
                hint="check 'security.protocol', 'sasl.*' and 'ssl.*' in 'kafka.properties'",
            )
        if _AWAY.search(text):
            return BrokerAway(f"Kafka failed while {doing}: {reason}")
        return SourceError(f"Kafka failed while {doing}: {reason}")
    return TaskFailed(f"Spark failed while {doing}: {reason}", text)


def is_outage(error: KaflowError) -> bool:
    """Tell whether a system outside of ours does not answer, and may come back."""
    return error.outage == "retry"


def is_retryable(error: KaflowError) -> bool:
    """Tell whether the same batch may succeed when it is tried again."""
    if error.outage in ("stop", "bad settings"):
        return False
    match error:
        case (
            ModelError()
            | StateError()
            | LimitReached()
            | DataLost()
            | ExecutorsUnfit()
            | DrainIncomplete()
        ):
            return False
        case ClusterAway():
            return False  # it was waited for
        case MissingTopic() | SchemaChanged() | RecordRefused():
            return False
        case TakenOver():
            return False  # two runs would fence each other for ever
        case SourceError() | SinkError() | RunError():
            return True
        case _:
            return False


def _texts(error: BaseException) -> Iterator[str]:
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        yield f"{type(at).__module__}.{type(at).__name__}: {at}"
        at = at.__cause__ or at.__context__


def _reason(text: str) -> str:
    """Return the last exception that Spark's text names: the one that caused the others."""
    causes = [line for line in text.splitlines() if line.startswith("Caused by: ")]
    for line in reversed(causes or text.splitlines()):
        found = _EXCEPTION.search(line)
        while found and (inner := _EXCEPTION.match((found[2] or "").strip())):
            found = inner  # Spark puts one exception's text into the next one's
        if found:
            said = (found[2] or "").strip()
            return f"{found[1]}: {said}" if said else found[1]
    return text.strip().partition("\n")[0][:300]
