"""Flows of pipelines with several chains: rows of `fixtures/flows`, and what topics are to them."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kaflow_engine.errors import Location
from kaflow_engine.flow.chains.chain import chain_of, chains
from kaflow_engine.flow.decodes import decode_id
from kaflow_engine.flow.edges import Driving
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import inputs_of, level_of, projections, projects_of, state_name
from kaflow_engine.flow.operators import Decode, Operator, TakesRows
from kaflow_engine.flow.sinks import Sink, TableSink, TopicSink
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import pipeline_from_mapping
from kaflow_engine.model.project import load_project
from kaflow_engine.plan.planner.pipeline_plan import build_plan
from kaflow_engine.plan.planner.planned import PlannedPipeline
from kaflow_engine.runtime.planning.plan_codec import plan_of, plan_text
from kaflow_engine.sql.pipeline import pipeline_topics

ROWS = Path(__file__).parents[2] / "fixtures" / "flows"
TYPES = {"id": "VARCHAR", "k": "VARCHAR", "n": "INTEGER", "d": "DOUBLE", "xs": "INTEGER[]"}
COLUMNS = tuple(Column(name, kind) for name, kind in TYPES.items())


def planned(raw: dict[str, Any]) -> PlannedPipeline:
    spec = pipeline_from_mapping(raw, Location("p.yaml", 1))
    return build_plan(spec, Config(), dict.fromkeys(pipeline_topics(spec), COLUMNS))


def rows() -> list[Any]:
    return [
        pytest.param(row, id=f"{file.stem}: {row['title']}")
        for file in sorted(ROWS.glob("*.yaml"))
        for row in yaml.load(file.read_text(), yaml.CSafeLoader)
    ]


def shown(flow: Flow) -> str:
    """Describe operators and sinks, one a line; what only decodes is left out."""
    nodes = [each for each in (*flow.operators, *flow.sinks) if not isinstance(each, Decode)]
    return "".join(f"{_line(flow, node)}\n" for node in nodes)


def columns_shown(flow: Flow) -> str:
    """Show each column of each sink with its type, and what it is in each branch."""
    lines: list[str] = []
    for sink in flow.sinks:
        branches = [project.columns for project in projects_of(flow, sink)]
        for column in zip(*branches, strict=True):
            ((name, kind),) = {(each.name, each.type) for each, _ in column}
            lines.append(f"{name} {kind}: {' | '.join(sql for _, sql in column)}\n")
    return "".join(lines)


def _line(flow: Flow, node: Operator | Sink) -> str:
    inputs = list(inputs_of(node))
    if isinstance(node, TakesRows) and isinstance(node.rows, Driving):
        inputs[0] += f" driving chain {node.rows.chain}"
    words = [node.id]
    is_sink = isinstance(node, TopicSink | TableSink)
    if not is_sink and state_name(node) is not None:
        words.append(f"state {state_name(node)}")
    words.append(f"level {level_of(flow, node)} <- {', '.join(inputs)}")
    if is_sink and node.exchange:
        words.append(f"by {node.key}" if node.key else "by record")
    return " ".join(words)


@pytest.mark.parametrize("row", rows())
def test_flow(row: dict[str, Any]) -> None:
    found = planned(yaml.safe_load(row["pipeline"]))
    assert shown(found.plan) == row["flow"]
    if "columns" in row:
        assert columns_shown(found.plan) == row["columns"]
    made = [each.number for each in chains(found.plan) if not each.below]  # others gather theirs
    made = made if len(made) == len(chains(found.plan)) else sorted(made)
    assert [each.number for each in found.chains] == made
    assert plan_of(plan_text(found.plan)) == found.plan


TWO_CHAINS: dict[str, Any] = {
    "name": "p",
    "outputs": [
        {"query": "SELECT a.id, b.n FROM a LEFT JOIN b ON a.id = b.id", "topic": "x"},
        {"query": "SELECT b.id, d.d FROM b JOIN d ON b.k = d.k WHERE b.n > 1", "topic": "y"},
    ],
    "state": {"dimensions": ["d"], "events": {"overrides": {"b": "2h"}}},
}


def test_a_topic_is_read_once_with_the_columns_and_in_the_roles_of_all_chains() -> None:
    found = planned(TWO_CHAINS)
    assert [
        (each.name, each.dimension, each.side, each.driving, each.ttl) for each in found.roles
    ] == [
        ("a", False, False, True, 3_600_000),
        ("b", False, True, True, 7_200_000),
        ("d", True, False, False, 3_600_000),
    ]
    assert [
        (each.name, each.rank, each.driving, [column.name for column in each.columns])
        for each in found.plan.sources
    ] == [
        ("a", 2, True, ["id"]),
        ("b", 1, True, ["id", "k", "n"]),
        ("d", 0, False, ["k", "d"]),
    ]
    assert [each.id for each in found.plan.operators if isinstance(each, Decode)] == [
        decode_id(name) for name in ("a", "b", "d")
    ]


def test_a_chain_waits_for_what_its_own_outputs_require() -> None:
    smart = {"emission": {"type": "smart", "require": ["n"]}}
    first, second = chains(planned({**TWO_CHAINS, **smart}).plan)
    assert first.joins[0].require == '("b.n") IS NOT NULL'
    assert (second.joins[0].require, second.driving.needs) == (None, None)
    assert (first.driving.filter, second.driving.filter) == (None, '("b.n" > 1)')


def test_original_bytes_travel_in_the_chains_that_may_fail() -> None:
    outputs = [
        {"query": "SELECT a.id FROM a LEFT JOIN b ON a.id = b.id", "topic": "x"},
        {"query": "SELECT a.n / b.n AS q FROM a LEFT JOIN b ON a.k = b.k", "topic": "y"},
    ]
    flow = planned({"name": "p", "outputs": outputs}).plan
    raws = [chain_of(flow, project).driving.raw for project in projections(flow)]
    assert raws == [None, "TRUE"]


def test_models_may_be_unions(tmp_path: Path) -> None:
    files = {
        "both.sql": "{{ config(materialized='ephemeral') }}\n"
        "SELECT id, n FROM a -- the first\nUNION ALL\nSELECT k, n FROM b",
        "m.sql": "SELECT id FROM {{ ref('both') }} u WHERE n > 1\nUNION ALL\nSELECT id FROM c",
    }
    folder = tmp_path / "models"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    (spec,) = load_project([tmp_path], None, {}).pipelines
    flow = build_plan(spec, Config(), dict.fromkeys(pipeline_topics(spec), COLUMNS)).plan
    (sink,) = flow.sinks
    assert sink.inputs == ("project:m", "project:m#1", "project:m#2")
    assert columns_shown(flow) == (
        'id VARCHAR: "a.id" | "b.k" | "c.id"\n$key BLOB: "a.$key" | "b.$key" | "c.$key"\n'
    )
