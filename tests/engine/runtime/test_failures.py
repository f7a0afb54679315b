import pytest

from kaflow_engine.connectors.delta.errors import TableUnfit
from kaflow_engine.connectors.kafka.admin import MissingTopic
from kaflow_engine.connectors.kafka.errors import (
    BrokerAway,
    BrokerAwaySink,
    LoginRefused,
    LoginRefusedSink,
    RowRefused,
    TransactionTimeoutRefused,
)
from kaflow_engine.errors import (
    DrainIncomplete,
    LimitReached,
    ModelError,
    SinkError,
    SourceError,
    StateError,
    TakenOver,
)
from kaflow_engine.formats.schema_changes import SchemaChanged
from kaflow_engine.formats.schema_registry import RegistryAway
from kaflow_engine.runtime.failures.failures import (
    DataLost,
    ExecutorLost,
    ExecutorsUnfit,
    LossSuspected,
    SparkEnded,
    TaskFailed,
    carried,
    is_retryable,
    to_error,
)


class Py4JJavaError(Exception):
    """Stands for what py4j raises."""


def test_an_error_of_a_task_arrives_as_it_was():
    spark = Py4JJavaError(f"Traceback …\n{carried(SinkError('no', hint='do this'))}\n\tat scala")
    error = to_error(spark)
    assert type(error) is SinkError
    assert str(error) == "no\n  hint: do this"


def test_an_unforeseen_error_of_a_task_says_what_it_was():
    try:
        raise ValueError("bad value\nmore")
    except ValueError as wrong:
        error = to_error(Py4JJavaError(str(carried(wrong))))
    assert str(error) == "a task failed: ValueError: bad value"
    assert isinstance(error, TaskFailed)
    assert "test_failures" in error.details


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        (
            "org.apache.spark.SparkException: Job aborted\nCaused by: "
            "org.apache.kafka.common.errors.TimeoutException: no metadata\n\tat x",
            BrokerAway,
            "Kafka failed while reading: TimeoutException: no metadata",
        ),
        (
            "org.apache.spark.SparkException: Job aborted\nCaused by: "
            "org.apache.kafka.common.errors.InvalidTopicException: x",
            SourceError,
            "Kafka failed while reading: InvalidTopicException: x",
        ),
        (
            "org.apache.spark.X: x\nCaused by: org.apache.kafka.common.errors."
            "SaslAuthenticationException: Authentication failed",
            LoginRefused,
            "the broker refused the login or its certificate while reading",
        ),
        (
            "org.apache.spark.X: [KAFKA_DATA_LOSS.X] Some data may have been lost",
            LossSuspected,
            "records were lost in Kafka while reading",
        ),
        ("py4j.Py4JNetworkError: Answer from Java side is empty", SparkEnded, "Spark's JVM ended"),
        (
            "py4j.protocol.Py4JError: An error occurred while calling o136.isActive",
            SparkEnded,
            "Spark's JVM ended",
        ),
        (
            "py4j.protocol.Py4JJavaError: An error occurred while calling o136.start.\n"
            ": org.apache.kafka.common.errors.TimeoutException: no metadata\n\tat x",
            BrokerAway,
            "Kafka failed while reading: TimeoutException: no metadata",
        ),
        (
            "java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.\n"
            "org.apache.spark.api.java",
            SparkEnded,
            "Spark's application ended while reading",
        ),
        (
            "org.apache.spark.SparkException: Job aborted due to stage failure: "
            "ExecutorLostFailure (executor 1 exited caused by one of the running tasks)",
            ExecutorLost,
            "an executor was lost while reading",
        ),
        (
            "org.apache.spark.SparkException: Job aborted: org.apache.spark.shuffle."
            "FetchFailedException\nCaused by: java.net.ConnectException: Connection refused",
            ExecutorLost,
            "an executor was lost while reading",
        ),
        (
            'org.apache.spark.X: java.io.IOException: Cannot run program "/no/python": error=2',
            ExecutorsUnfit,
            "executors have no '/no/python'",
        ),
        (
            "org.apache.spark.X: PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker",
            ExecutorsUnfit,
            "executors have another version of Python than the driver",
        ),
        (
            "org.apache.spark.X: ModuleNotFoundError: No module named 'kaflow_engine'",
            ExecutorsUnfit,
            "the Python of executors lacks the module 'kaflow_engine'",
        ),
        (
            "org.apache.spark.X: failed\nCaused by: java.io.IOException: No space left on device",
            StateError,
            "a disk is full while reading",
        ),
        (
            "org.apache.spark.SparkException: Task failed while writing",
            TaskFailed,
            "Spark failed while reading: SparkException: Task failed while writing",
        ),
    ],
)
def test_what_spark_says_becomes_one_line(text, kind, message):
    error = to_error(Py4JJavaError(text), "reading")
    assert type(error) is kind
    assert error.message.startswith(message)
    assert "\n" not in error.message


def test_a_mistake_of_ours_keeps_its_words():
    assert to_error(KeyError("x"), "doing").message == "doing failed: KeyError: 'x'"


@pytest.mark.parametrize(
    ("error", "retried"),
    [
        (SourceError("x"), True),
        (SinkError("x"), True),
        (TaskFailed("x"), True),
        (ModelError("x"), False),
        (StateError("x"), False),
        (LimitReached("x"), False),
        (DataLost("x"), False),
        (LossSuspected("x"), True),
        (MissingTopic("x"), False),
        (LoginRefused("x"), False),
        (RowRefused("x"), False),
        (LoginRefusedSink("x"), False),
        (SchemaChanged("x"), False),
        (TransactionTimeoutRefused("x"), False),
        (TableUnfit("x"), False),
        (BrokerAwaySink("x"), True),
        (RegistryAway("x"), True),
        (SparkEnded("x"), True),
        (DrainIncomplete("x"), False),
        (TakenOver("x"), False),
        (SinkError("another run has taken over"), True),  # its class decides, not its words
    ],
)
def test_only_what_may_pass_is_tried_again(error, retried):
    assert is_retryable(error) is retried
