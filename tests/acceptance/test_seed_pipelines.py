"""The six pipelines printed in the first seed, verbatim, from Kafka to Kafka."""

from pathlib import Path

import pytest

from kaflow_engine.cli.board import account
from kaflow_engine.formats.avro_schema import avro_schema
from kaflow_engine.formats.avro_types import parse_avro
from kaflow_engine.formats.registry import Registry
from kaflow_engine.model.config import Config
from kaflow_engine.model.loader import load_pipeline
from kaflow_engine.plan.draw import draw
from kaflow_engine.plan.explain import explain
from kaflow_engine.testing.case_executor import LocalExecutor
from kaflow_engine.testing.case_report import report_lines
from kaflow_engine.testing.cases import CaseResult, run_case
from tests.acceptance.kafka_cases import AROUND, cases_of, config_for, run_cases

JSON, AVRO = cases_of("seeds_json.yaml"), cases_of("seeds_avro.yaml")
CASES = [pytest.param(case, id=case.name) for case in (*JSON, *AVRO)]
NAMES = [case.name for case in (*JSON, *AVRO)]
PIPELINES = Path(__file__).parents[1] / "fixtures" / "pipelines"


@pytest.fixture(scope="module")
def json_run(spark, broker, tmp_path_factory):
    return run_cases(spark, JSON, config_for(broker, tmp_path_factory.mktemp("json")))


@pytest.fixture(scope="module")
def avro_run(spark, broker, registry, json_run, tmp_path_factory):
    # after the other run, because two pipelines read the same topic in different formats
    path = tmp_path_factory.mktemp("avro")
    return run_cases(spark, AVRO, config_for(broker, path, registry, use_avro=True))


@pytest.fixture
def ran(request, json_run, avro_run):
    return {**json_run, **avro_run}[request.param]


@pytest.mark.parametrize("case", CASES)
def test_the_local_executor_gives_the_same_rows(case):
    result = run_case(case, LocalExecutor(), around=AROUND)
    assert result.passed, "\n".join(report_lines(result))


def test_all_six_are_there():
    assert sorted(NAMES) == sorted(path.stem for path in PIPELINES.glob("*.yaml"))


@pytest.mark.parametrize("name", NAMES)
def test_explains_itself_without_a_broker(name):
    spec = load_pipeline(PIPELINES / f"{name}.yaml", {})
    text = "\n".join(draw(explain(spec, Config())))
    assert spec.output.topic in text
    assert "not known yet" in text


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.services
class TestOnKafka:
    @pytest.mark.parametrize("ran", NAMES, indirect=True)
    def test_rows_dead_letters_and_counters_are_right(self, ran):
        result = CaseResult(case=ran.case, differences=tuple(ran.differences))
        assert result.passed, "\n".join(report_lines(result))

    @pytest.mark.parametrize("ran", NAMES, indirect=True)
    def test_every_driving_record_is_in_one_class(self, ran):
        read, classes, missing = account(ran.summary.counters)
        assert missing == 0, classes
        driving = next(topic.name for topic in ran.planned.plan.topics if topic.driving)
        assert read == sum(record.topic == driving for record in ran.case.given)

    @pytest.mark.parametrize("ran", NAMES, indirect=True)
    def test_rows_carry_the_time_of_their_driving_record(self, ran):
        driving = next(topic.name for topic in ran.planned.plan.topics if topic.driving)
        key = ran.planned.plan.finish.key
        assert key is not None
        times = {record.timestamp for record in ran.case.given if record.topic == driving}
        found = ran.rows["timestamp"].to_pylist()
        assert len(found) == len(ran.outcome.rows)
        assert set(found) <= times
        for time, row in zip(found, ran.outcome.rows, strict=True):
            assert row.value.get("timestamp", time) == time

    @pytest.mark.parametrize("ran", NAMES, indirect=True)
    def test_explains_itself_with_the_columns_found(self, ran):
        text = "\n".join(draw(explain(ran.planned.spec, Config(), ran.planned.schemas)))
        assert "not known yet" not in text
        for topic in ran.planned.plan.topics:
            assert topic.name in text
            for column in topic.columns:
                assert column.name in text

    def test_avro_output_is_registered(self, avro_run, registry):
        for name, ran in avro_run.items():
            finish = ran.planned.plan.finish
            latest = Registry(url=registry.url).latest(f"{finish.topic}-value")
            if finish.format == "json":
                assert latest is None, name
                continue
            assert latest is not None, name
            columns = [column for column, _ in finish.outputs]
            assert parse_avro(latest.schema) == parse_avro(avro_schema(columns)), name
            assert {value[:5] for value in ran.rows["value"].to_pylist()} == {
                b"\0" + latest.id.to_bytes(4, "big")
            }

    def test_a_dead_letter_keeps_bytes_and_headers(self, json_run):
        (letter,) = json_run["user_enrichment"].letters.to_pylist()
        headers = {header["key"]: header["value"] for header in letter["headers"]}
        assert (letter["key"], letter["value"], headers["trace"]) == (b"u1", b"{broken", b"abc")
        assert headers["kaflow.pipeline"] == b"user_enrichment"
