"""Handlers: a service that a test runs, and rows that it is asked about."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from kaflow_engine.errors import Location
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.transforms import HandlerParams, Transform
from kaflow_engine.measures import Measures
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import pipeline_from_mapping
from kaflow_engine.operators.transform.contract import TransformBatch, Transformed
from kaflow_engine.operators.transform.kinds import transform_kind
from kaflow_engine.plan.planner.pipeline_plan import build_plan
from kaflow_engine.state.answers import NO_ANSWERS, Answers
from kaflow_engine.state.log.answers import KeptAnswers
from kaflow_engine.state.reader import StateRef
from kaflow_engine.state.storage.store import LocalStore
from tests.receiver import Answer, Request

COLUMNS = (Column("id", "BIGINT"), Column("amount", "DECIMAL(10,2)"))
RISK = Column("risk", "VARCHAR")
ORDERS = {"orders": (Column("id", "BIGINT"), Column("amount", "INTEGER"))}
FAILS = "CAST(CASE amount WHEN 0 THEN 'none' ELSE '1' END AS INTEGER)"
"""Fails behind the handler for order 17, so that its rows are taken out in the task."""
COUNTED = "SELECT risk, count(*) AS n FROM enriched GROUP BY risk"


def rows(*ids: int) -> pa.Table:
    amounts = pa.array([f"{n}.10" for n in ids]).cast(pa.decimal128(10, 2))
    return pa.table({"id": pa.array(ids, pa.int64()), "amount": amounts})


def kept(folder: Path, epoch: int = 1, *, batch: int = 7, generation: int = 2) -> Answers:
    return KeptAnswers(LocalStore(folder), StateRef("abc", generation), batch, epoch)


def ask(
    url: str,
    given: pa.Table,
    *,
    answers: Answers = NO_ANSWERS,
    results: tuple[Column, ...] = (*COLUMNS, RISK),
    secrets: Mapping[str, str] = {},
    measures: Measures | None = None,
    **said: Any,
) -> Transformed:
    params = HandlerParams(
        url=url,
        headers=(),
        secret_headers=(),
        secret=None,
        batch=None,
        concurrency=4,
        envelope="none",
        timeout=10_000,
        retry_for=10_000,
    )
    transform = Transform(
        id="q0.transform",
        inputs=("q0.enter",),
        alias="transform",
        name="enriched",
        columns=COLUMNS,
        passed=(),
        results=results,
        params=replace(params, **said),
    )
    identities = pa.table({"t_part": [0] * given.num_rows, "t_off": given["id"]})
    return transform_kind("handler").open(transform)(
        given,
        TransformBatch(
            batch=7,
            batch_time=0,
            mark="m",
            identities=lambda: identities,
            answers=answers,
            secrets=secrets,
            measures=measures or Measures(),
        ),
    )


def asked(request: Request) -> Any:
    return json.loads(request.body)


def with_risk(request: Request) -> Answer:
    def of(row: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**row, "risk": f"r{row['id']}"}

    found = asked(request)
    return Answer(200, json.dumps([of(r) for r in found] if isinstance(found, list) else of(found)))


def made(found: Transformed) -> list[tuple[int, Mapping[str, Any]]]:
    return list(zip(found.origin.to_pylist(), found.rows.to_pylist(), strict=True))


def risks(found: Transformed) -> list[tuple[int, Any]]:
    return [(origin, row["risk"]) for origin, row in made(found)]


def failed(found: Transformed) -> list[tuple[int, str, str]]:
    return [(each.row, each.error, each.message) for each in found.failures]


def refuse(status: int) -> Callable[[Request], Answer]:
    def answer(request: Request) -> Answer:
        if any(row["id"] == 3 for row in asked(request)):
            return Answer(status, "no\n3s")
        return with_risk(request)

    return answer


def pipeline_plan(url: str, batch: int = 6) -> Flow:
    """Return the plan of a pipeline with two outputs that read a handler."""
    spec = pipeline_from_mapping(
        {
            "name": "p",
            "topics": {"orders": {"columns": {"id": "BIGINT", "amount": "INTEGER"}}},
            "relations": {
                "enriched": {
                    "type": "handler",
                    "from": "orders",
                    "url": url,
                    "batch": batch,
                    "schema": {"risk": "VARCHAR"},
                }
            },
            "outputs": [
                {"query": f"SELECT id, risk, {FAILS} AS n FROM enriched", "topic": "risks"},
                {"query": COUNTED, "topic": "counts"},
            ],
        },
        Location("p.yaml"),
    )
    return build_plan(spec, Config(), ORDERS).plan
