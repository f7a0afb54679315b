"""Rows as requests, on Spark and Kafka: each arrives, and none twice under two keys."""
# pyright: basic

import json
from collections import Counter

import pytest

from kaflow_engine.connectors.kafka.read import read_all
from kaflow_engine.errors import ModelError
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.runtime.drive.backfill_guard import check_backfill
from kaflow_engine.runtime.planning.prepare import prepare
from tests.acceptance.kills import peace_or
from tests.acceptance.run_child import killed_at
from tests.acceptance.three_days import CLICKS, DAYS, SECOND, config_for, load
from tests.receiver import Answer, running_receiver

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

CLICKED = range(DAYS * 144)
REFUSED = {100, 101, 250}


@pytest.fixture(scope="module")
def topics(broker):
    load(broker, "hook")
    return "hook"


@pytest.fixture
def receiver():
    with running_receiver() as found:
        yield found


def ids_of(request):
    return [row["id"] for row in json.loads(request.body)]


PLACES = peace_or([("rows_produced", 2), ("commit_logged", 2)], 1)


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_rows_arrive_wherever_a_run_is_killed(
    broker, spark, topics, receiver, tmp_path, unique, place
):
    from kaflow_engine.runtime.application import run_pipelines

    def answer(request):
        if len(receiver.requests) == 3:
            return Answer(503)
        return Answer(422, "no") if REFUSED & {*ids_of(request)} else Answer(200)

    receiver.answer = answer
    config = config_for(
        broker,
        tmp_path / "state",
        kafka={"brokers": broker.bootstrap},
        max_records=150,
        webhook={"connections": {"default": {"url": receiver.url}}},
    )
    query = f'SELECT id, u FROM "{topics}.clicks"'
    outputs = [
        {"query": query, "type": "webhook", "batch": 20},
        {"query": query, "topic": f"{unique}.out", "key": "id"},
    ]
    spec = PipelineSpec.model_validate(
        {"name": unique, "outputs": outputs, "topics": {f"{topics}.clicks": CLICKS}}
    )
    if place is not None:
        killed_at(*place, spec, config)
    (planned,) = prepare([spec], config)
    run_pipelines([planned.plan], config, until_caught_up=True, spark=spark)
    by_key = {request.headers["Idempotency-Key"]: ids_of(request) for request in receiver.taken}
    ids = Counter(n for found in by_key.values() for n in found)
    assert ids == Counter(n for n in CLICKED if n not in REFUSED)
    letters = read_all(broker.settings, planned.plan.dead_letter_topic)["headers"].to_pylist()
    phases = Counter(
        {h["key"]: h["value"] for h in headers}["kaflow.phase"].decode() for headers in letters
    )
    assert phases == {"decode": 2, "sink": len(REFUSED)}
    with pytest.raises(ModelError, match="a backfill cannot write to 'webhook:rows'"):
        check_backfill(spec, config, SECOND)
