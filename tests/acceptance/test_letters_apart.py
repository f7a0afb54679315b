"""Dead letters in files and in a table, on Spark: each once, listed, and put again into topics."""
# pyright: basic

import pytest

from kaflow_engine.connectors.kafka.client import open_producer
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.runtime.dead_letters.redrive import find_letters, redrivable, redrive
from kaflow_engine.runtime.planning.prepare import prepare
from tests.acceptance.run_child import killed_at
from tests.acceptance.three_days import config_for
from tests.committed import read_committed

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.services]


@pytest.fixture
def config(broker, postgres, tmp_path):
    connections = {"default": {"url": postgres.url}}
    return config_for(broker, tmp_path / "state", postgres={"connections": connections})


def spec_of(name, letters):
    return PipelineSpec.model_validate(
        {
            "name": name,
            "query": f'SELECT id FROM "{name}.in"',
            "output": {"topic": f"{name}.out", "key": "id"},
            "topics": {f"{name}.in": {"columns": {"id": "BIGINT"}}},
            "dead_letters": letters,
        }
    )


@pytest.mark.parametrize(("kind", "kill"), [("postgres", "committed"), ("files", None)])
def test_dead_letters_of_another_kind(broker, spark, config, unique, kind, kill):
    from kaflow_engine.runtime.application import run_pipelines

    broker.create_topic(f"{unique}.in", 2)
    producer = open_producer(broker.settings).api
    for n, value in enumerate((b'{"id": 1}', b"broken", b'{"id": 2}', b"worse")):
        producer.produce(f"{unique}.in", value, b"k", n % 2, headers=[("h", b"\xff")])
    assert producer.flush(30) == 0
    letters = {"type": kind, **({"table": unique} if kind == "postgres" else {})}
    spec = spec_of(unique, letters)
    if kill is not None:
        killed_at(kill, "*", spec, config)
    for attempt in (1, 2):
        (planned,) = prepare([spec], config)
        summary = run_pipelines([planned.plan], config, until_caught_up=True, spark=spark)
        assert summary.pipelines[unique].counters["dead_letter"] == 2 * attempt
        found = find_letters(spec, config)
        assert sorted((each.value, each.attempt) for each in found) == sorted(
            (value, n + 1) for value in (b"broken", b"worse") for n in range(attempt)
        )
        assert all(each.headers[0] == ("h", b"\xff") for each in found)
        fresh = [each for each in found if each.attempt == attempt]
        assert redrivable(spec, config, found) == [each for each in found if not each.redriven]
        if attempt == 1:
            assert len(redrive(spec, config, None)) == 2
            assert redrive(spec, config, None) == []
        else:
            assert [each.redriven for each in fresh] == [False, False]
    assert read_committed(broker.settings, f"{unique}.out").num_rows == 2
