"""Rows that a service enriches, on Spark and Kafka: each once, whatever it answers again."""
# pyright: basic

import json
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import count

import pytest

from kaflow_engine.connectors.http.errors import HttpAway, HttpUnfit
from kaflow_engine.connectors.kafka.read import read_all
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.evolution.diff import change
from kaflow_engine.runtime.planning.prepare import prepare
from tests.acceptance.kills import peace_or
from tests.acceptance.run_child import killed_at
from tests.acceptance.three_days import CLICKS, DAYS, SECOND, config_for, load
from tests.receiver import Answer, running_receiver

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

CLICKED = set(range(DAYS * 144))
REFUSED = {100, 101, 250}
"""Refused at first, and taken if asked about again."""
GARBAGE = {7, 300}
KILLS = [(point, 2) for point in ("changes_written", "rows_produced", "committed", "commit_logged")]


@pytest.fixture(scope="module")
def topics(broker):
    load(broker, "asked")
    return "asked"


class Fickle:
    """Fails three times, refuses, answers garbage, and answers otherwise each time."""

    def __init__(self):
        self.said = defaultdict(list)
        self.failures = iter((503, 429, 408))
        self._numbers = count()

    def __call__(self, request):
        status = next(self.failures, None)
        if status is not None:
            return Answer(status, "", {"Retry-After": "0"})
        ids = [row["id"] for row in json.loads(request.body)]
        assert request.headers["Authorization"] == "Bearer word-of-crm"
        if any(n in REFUSED and not self.said[n] for n in ids):
            for n in ids if len(ids) == 1 else ():
                self.said[n].append(None)
            return Answer(422, "refused, Bearer word-of-crm")
        answers = []
        for n in ids:
            risk = None if n in GARBAGE and not self.said[n] else f"r{next(self._numbers)}"
            self.said[n].append(risk)
            answers.append([] if risk is None else {"risk": risk})
        return Answer(200, json.dumps(answers))


def spec_of(name, topics, receiver):
    """Rows that are asked about, and groups over them."""
    clicks = f"{topics}.clicks"
    relation = {
        "type": "handler",
        "from": clicks,
        "url": f"{receiver.url}/risk",
        "secret_headers": {"Authorization": "crm"},
        "batch": 20,
        "schema": {"risk": "VARCHAR"},
    }
    groups = "SELECT max(risk) AS risk, id FROM enriched GROUP BY id"
    outputs = [
        {"query": "SELECT id, u, risk FROM enriched", "topic": f"{name}.rows", "key": "id"},
        {"query": groups, "topic": f"{name}.groups"},
    ]
    return PipelineSpec.model_validate(
        {
            "name": name,
            "relations": {"enriched": relation},
            "outputs": outputs,
            "topics": {clicks: CLICKS},
        }
    )


def values(broker, topic):
    found = read_all(broker.settings, topic)["value"].to_pylist()
    return sorted((row["id"], row["risk"]) for row in map(json.loads, found))


@pytest.mark.parametrize("place", peace_or(KILLS, 1), ids=str)
def test_answers_outlive_whatever_a_run_is_killed_at(
    broker, spark, topics, tmp_path, unique, place
):
    from kaflow_engine.runtime.application import run_pipelines

    with running_receiver() as receiver:
        fickle = receiver.answer = Fickle()
        config = config_for(
            broker, tmp_path / "state", max_records=150, secrets={"crm": "Bearer word-of-crm"}
        )
        spec = spec_of(unique, topics, receiver)
        if place is not None:
            killed_at(*place, spec, config)
        (planned,) = prepare([spec], config)
        run_pipelines([planned.plan], config, until_caught_up=True, spark=spark)
    rows = values(broker, f"{unique}.rows")
    assert rows == values(broker, f"{unique}.groups")
    lost = {n for n, said in fickle.said.items() if len(said) > 1}
    assert len(lost) <= (0 if place is None else 150)
    assert all(risk in fickle.said[n] for n, risk in rows)
    firsts = {n for n in REFUSED | GARBAGE if n not in lost}
    ids = [n for n, _ in rows]
    assert len(ids) == len({*ids})
    letters = read_all(broker.settings, planned.plan.dead_letter_topic)
    phases, dead = Counter(), set()
    for letter in letters.to_pylist():
        headers = {h["key"]: h["value"].decode() for h in letter["headers"]}
        phases[headers["kaflow.phase"]] += 1
        assert "word-of-crm" not in str(headers)
        if headers["kaflow.phase"] == "transform":
            dead.add(json.loads(letter["value"])["id"])
    assert firsts <= dead <= REFUSED | GARBAGE
    assert {*ids} == CLICKED - dead
    assert phases == {"decode": 2, "transform": len(dead)}


def test_a_backfill_keeps_answers_of_its_own(broker, spark, topics, tmp_path, unique):
    from kaflow_engine.runtime.application import run_backfill

    wanted = replace(SECOND, force=True)
    with running_receiver() as receiver:
        fickle = receiver.answer = Fickle()
        config = config_for(
            broker, tmp_path / "state", max_records=40, secrets={"crm": "Bearer word-of-crm"}
        )
        spec = spec_of(unique, topics, receiver)
        spec = spec.model_copy(update={"outputs": spec.outputs[:1]})
        killed_at("rows_produced", 2, spec, config, wanted)
        (planned,) = prepare([spec], config)
        run_backfill(planned.plan, config, wanted, spark=spark)
    rows = values(broker, f"{unique}.rows")
    second = {n for n in CLICKED if n // 144 == 1} - REFUSED
    assert [n for n, _ in rows] == sorted(second)
    assert all(risk in fickle.said[n] for n, risk in rows)


@pytest.mark.parametrize("status", [503, 404])
def test_a_service_that_stays_away_ends_the_run_and_loses_nothing(
    broker, spark, topics, tmp_path, unique, status
):
    """The batch that is open then asks where the corrected file says."""
    from kaflow_engine.runtime.application import run_pipelines

    def answer(request):
        if request.path == "/wrong":
            return Answer(status)
        return Answer(200, json.dumps([{"risk": "r"} for _ in json.loads(request.body)]))

    def plan(path):
        relation = {
            "type": "handler",
            "from": f"{topics}.clicks",
            "url": f"{receiver.url}/{path}",
            "batch": 500,
            "schema": {"risk": "VARCHAR"},
            "retry_for": "100ms",
        }
        spec = PipelineSpec.model_validate(
            {
                "name": unique,
                "relations": {"enriched": relation},
                "query": "SELECT id, risk FROM enriched",
                "output": {"topic": f"{unique}.rows"},
                "topics": {f"{topics}.clicks": CLICKS},
            }
        )
        return prepare([spec], config)[0].plan

    config = config_for(broker, tmp_path / "state", retry_deadline="3s")
    with running_receiver() as receiver:
        receiver.answer = answer
        ended = HttpAway if status == 503 else HttpUnfit
        with pytest.raises(ended, match=f"handler 'enriched' at {receiver.url} answers {status}"):
            run_pipelines([plan("wrong")], config, until_caught_up=True, spark=spark)
        run_pipelines([plan("right")], config, until_caught_up=True, change=change, spark=spark)
    assert [n for n, _ in values(broker, f"{unique}.rows")] == sorted(CLICKED)
