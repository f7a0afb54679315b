"""Turns what Spark throws into errors that say what happened, and tells which may pass."""

import base64
import pickle
import re
import traceback
from collections.abc import Iterator
from sys import version_info

from kaflow_engine.connectors.kafka_admin import MissingTopic
from kaflow_engine.connectors.kafka_errors import (
    BrokerAway,
    BrokerAwaySink,
    LoginRefused,
    LoginRefusedSink,
    RowRefused,
    TransactionTimeoutRefused,
)
from kaflow_engine.errors import (
    KaflowError,
    LimitReached,
    ModelError,
    RunError,
    SinkError,
    SourceError,
    StateError,
)
from kaflow_engine.formats.avro_changes import SchemaChanged
from kaflow_engine.formats.registry import RegistryAway
from kaflow_engine.operators.dead_letters import RecordRefused
from kaflow_engine.state.bucket import BucketAway

_CARRIED = re.compile(r"<<kaflow:([A-Za-z0-9+/=]+)>>")
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
_TAKEN_OVER = "has taken over"
_FULL = re.compile(r"No space left on device|Disk quota exceeded")
_JVM_GONE = re.compile(
    r"Answer from Java side is empty|Connection refused|Py4JNetworkError|SparkContext was shut down"
)
_STOPPED = re.compile(r"stopped SparkContext|LiveListenerBus is stopped|SparkContext was shut down")
_EXECUTOR_GONE = re.compile(r"ExecutorLostFailure|FetchFailed|MetadataFetchFailed")
_NO_PYTHON = re.compile(r'Cannot run program \\?"([^"\\]+)|PYTHON_VERSION_MISMATCH')
_NO_MODULE = re.compile(r"No module named '([\w.]+)'")


class DataLost(SourceError):
    """Records that the pipeline still needs are gone from their topic."""


class LossSuspected(SourceError):
    """Spark missed records; the next attempt asks the broker which, and says so or goes on."""


class TaskFailed(RunError):
    """A task failed for a reason that nobody foresaw; `details` is its stack."""

    def __init__(self, message: str, details: str = "", hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.details = details

    def __reduce__(self) -> tuple[object, ...]:
        return TaskFailed, (self.message, self.details, self.hint)


class SparkEnded(RunError):
    """Spark's JVM is gone; only a new process can go on."""


class ClusterAway(RunError):
    """The cluster does not answer, or gives nothing to run on."""


class ExecutorsUnfit(RunError):
    """What tasks need is not there where executors run; trying again does not bring it."""


class ExecutorLost(RunError):
    """An executor went in the middle of a batch; what it did is done again elsewhere."""


def carried(error: BaseException) -> RuntimeError:
    """Return what a task raises so that the driver gets `error` back."""
    if not isinstance(error, KaflowError):
        text = str(error).strip().partition("\n")[0]
        details = "".join(traceback.format_exception(error))
        error = TaskFailed(f"a task failed: {type(error).__name__}: {text}", details)
    return RuntimeError(f"<<kaflow:{base64.b64encode(pickle.dumps(error)).decode()}>>")


def to_error(error: BaseException, doing: str = "running a batch") -> KaflowError:
    """Return the KaflowError behind whatever a Spark call raised."""
    if isinstance(error, KaflowError):
        return error
    text = "\n".join(_texts(error))
    if found := _CARRIED.search(text):
        original: object = pickle.loads(base64.b64decode(found[1]))
        if isinstance(original, KaflowError):
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
    return isinstance(error, BrokerAway | BrokerAwaySink | RegistryAway | BucketAway)


def is_retryable(error: KaflowError) -> bool:
    """Tell whether the same batch may succeed when it is tried again."""
    match error:
        case (
            ModelError()
            | StateError()
            | LimitReached()
            | DataLost()
            | SparkEnded()
            | ExecutorsUnfit()
        ):
            return False
        case ClusterAway():
            return False  # it was waited for
        case LoginRefused() | LoginRefusedSink():
            return False
        case MissingTopic() | RowRefused() | SchemaChanged() | RecordRefused():
            return False
        case TransactionTimeoutRefused():
            return False
        case SourceError() | SinkError() | RunError():
            return _TAKEN_OVER not in error.message  # two runs would fence each other for ever
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
