"""Keys with windows, from Kafka to Kafka, read by the classes of Kafka Streams."""
# pyright: basic

import pytest

from kaflow_engine.connectors.kafka.topic_schemas import resolve_schemas
from kaflow_engine.errors import SourceError
from kaflow_engine.model.config import Config
from kaflow_engine.runtime.spark.jars import Artifact, fetch_files, kafka_broker_jars
from kaflow_engine.testing.cases.cases import CaseResult
from kaflow_engine.testing.cases.pipeline import plan_case
from kaflow_engine.testing.cases.report import report_lines
from tests.acceptance.kafka_cases import AROUND, Ran, cases_of, config_for, run_cases

*CASES, AVRO = cases_of("key_formats.yaml")
STREAMS = Artifact(
    "org.apache.kafka:kafka-streams:4.3.1",
    "bd73f3805e116f711e8456ee89a8a5b43ff5dcf5a5bb865afae29deae89e7c4b",
)
BESIDE = ("kafka-clients-", "slf4j-api-")
SERIALIZERS = "org.apache.kafka.common.serialization."


class Streams:
    """The deserializers of Kafka Streams in the JVM of a session."""

    def __init__(self, spark) -> None:
        self._gateway = spark.sparkContext._gateway
        self._jvm = spark._jvm
        jars = fetch_files("kafka-streams", [STREAMS])
        jars += tuple(jar for jar in kafka_broker_jars() if jar.name.startswith(BESIDE))
        urls = [self._jvm.java.io.File(str(jar)).toURI().toURL() for jar in jars]
        given = self._array(self._jvm.java.net.URL, urls)
        self._loader = self._jvm.java.net.URLClassLoader(given, None)

    def _array(self, kind, items):
        found = self._gateway.new_array(kind, len(items))
        for place, item in enumerate(items):
            found[place] = item
        return found

    def make(self, name, *given):
        """Make an object by the constructor that takes so many arguments."""
        some = [c for c in self._loader.loadClass(name).getConstructors()]
        (constructor,) = [c for c in some if c.getParameterCount() == len(given)]
        return constructor.newInstance(self._array(self._jvm.java.lang.Object, given))

    def windowed(self, key):
        """Read a key of a LONG and a window: the value, and the start of the window."""
        inner = self.make(f"{SERIALIZERS}LongDeserializer")
        name = "org.apache.kafka.streams.kstream.TimeWindowedDeserializer"
        size = 1 << 40  # not in the key; a smaller number would be no Long to the JVM
        found = self.make(name, inner, size).deserialize("t", key)
        return found.key(), found.window().start()

    def session(self, key):
        """Read a key of a STRING and a session: the value, and its first and last time."""
        inner = self.make(f"{SERIALIZERS}StringDeserializer")
        name = "org.apache.kafka.streams.kstream.SessionWindowedDeserializer"
        found = self.make(name, inner).deserialize("t", key)
        return found.key(), found.window().start(), found.window().end()


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.services
def test_kafka_streams_reads_keys_with_windows(spark, broker, tmp_path):
    ran = run_cases(spark, CASES, config_for(broker, tmp_path))
    for case in CASES:
        result = CaseResult(case=case, differences=tuple(ran[case.name].differences))
        assert result.passed, "\n".join(report_lines(result))
    streams, start = Streams(spark), 1_767_225_600_000
    (key,) = keys_of(ran["windows in keys"])
    assert streams.windowed(key) == (-5, start)
    (key,) = keys_of(ran["sessions in keys"])
    assert streams.session(key) == ("a", start + 1_000, start + 31_000)


def keys_of(ran: Ran) -> list[bytes]:
    return ran.rows["key"].to_pylist()


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.services
def test_a_record_without_value_deletes_by_its_avro_key(spark, broker, registry, tmp_path):
    config = config_for(broker, tmp_path, registry)
    ran = run_cases(spark, [AVRO], config)[AVRO.name]
    result = CaseResult(case=AVRO, differences=tuple(ran.differences))
    assert result.passed, "\n".join(report_lines(result))


def test_avro_keys_need_a_registry(tmp_path):
    spec = plan_case(AVRO, AROUND).spec
    config = Config.model_validate({"kafka": {"brokers": "127.0.0.1:1"}})
    with pytest.raises(SourceError, match="are Avro, and no schema registry is configured"):
        resolve_schemas(spec, config, ["kf_orders"])
