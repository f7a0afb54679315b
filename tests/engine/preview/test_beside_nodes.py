"""What is shown beside the outputs of a pipeline changes none of their rows, whatever the case."""

import os
from collections.abc import Sequence
from dataclasses import replace

import pytest

from kaflow_engine.model.config import Config
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.pipeline_plan import build_plan
from kaflow_engine.plan.planner.planned import PlannedPipeline
from kaflow_engine.preview.plan import plan_preview
from kaflow_engine.preview.rows import Shown, ShownRow, shown
from kaflow_engine.testing.cases.cuts import GIVEN, cut
from kaflow_engine.testing.cases.pipeline import Surroundings, plan_case
from kaflow_engine.testing.cases.records import partitions_of, records_table, wire_of
from kaflow_engine.testing.cases.specs import Case
from kaflow_engine.testing.local.executor import LocalPipeline
from tests.engine.testing.case_folder import read_cases

FILES = ("changes_out.yaml", "relations.yaml", "sinks.yaml", "transforms.yaml")
"""Whose cases run; with KAFLOW_CASES=all those of all files, which takes minutes."""


HIDDEN = {
    "a relation that a join takes as its side, as a derived table would be": ("gold",),
}
"""By case the relations whose rows no output can have: those of a dimension drive nothing."""


def with_nodes(case: Case) -> bool:
    pipeline = str(case.pipeline)
    return case.spec.expect_error is None and "relations" in pipeline


CASES = [
    pytest.param(case, id=f"{file.name}: {case.name}")
    for file, cases in read_cases().items()
    if file.name in FILES or os.environ.get("KAFLOW_CASES") == "all"
    for case in cases
    if with_nodes(case)
]


def rows_of(case: Case, planned: PlannedPipeline, node: str | None) -> Sequence[Shown]:
    def planner(spec: PipelineSpec) -> PlannedPipeline:
        found = build_plan(spec, Config(), planned.schemas)
        return replace(found, plan=replace(found.plan, dimensions_first=False))

    plan = plan_preview(planned.spec, node, planner)
    assert [] == [e.name for e in plan.hidden if e.name not in HIDDEN.get(case.name, ())]
    wire = wire_of(plan.planned)
    plan = replace(plan, planned=wire.planned)
    places = partitions_of(wire, case.given)
    schemas = wire.schemas
    pipeline = LocalPipeline(wire.planned.plan, places, schema_by_id=lambda at, _: schemas[at])
    (cut_case,) = cut(case, GIVEN)
    found: list[Shown] = []
    for batch in cut_case.batches:
        done = pipeline.run(records_table(wire, batch.records), batch.batch_time)
        found += shown(plan, done.output)
    return found


@pytest.mark.parametrize("case", CASES)
def test_outputs_have_the_same_rows_with_and_without_their_relations(case: Case) -> None:
    planned = plan_case(case, Surroundings(variables={}))
    together = rows_of(case, planned, None)
    for write in planned.spec.writes:
        alone = rows_of(case, planned, write.target)
        assert [row.line() for row in alone if isinstance(row, ShownRow)] == [
            row.line()
            for row in together
            if isinstance(row, ShownRow) and row.node.name == write.target
        ]
