"""A planned pipeline: what runs, and what a person wants to know about it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import with_avro_ids
from kaflow_engine.model.columns import Column
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.roles import TopicRole
from kaflow_engine.sql.chain_shapes import ChainShape


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPipeline:
    """A plan beside the file and the queries that it was made from."""

    spec: PipelineSpec
    chains: tuple[ChainShape, ...]
    """The queries by what they read and join, numbered in the order of the file."""
    roles: tuple[TopicRole, ...]
    schemas: Mapping[str, tuple[Column, ...]]
    """The columns of every topic it reads."""
    plan: Flow

    def with_avro_ids(
        self, ids: Mapping[str, int], key_ids: Mapping[str, int]
    ) -> "PlannedPipeline":
        """Return the plan with the ids under which the schemas of its sinks are registered."""
        return replace(self, plan=with_avro_ids(self.plan, ids, key_ids))
