"""Pipelines over one topic `t`, and others beside it, run in batches of any size."""

from collections.abc import Mapping, Sequence
from typing import Any

from kaflow_engine.errors import Location
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import pipeline_from_mapping
from kaflow_engine.plan.planner.pipeline_plan import build_plan
from kaflow_engine.testing.local.executor import LocalPipeline
from tests.property.dice import Dice
from tests.property.executor import How, _table, crashes
from tests.reference.records import Record


class OneTopic:
    """A pipeline, and what it has written."""

    def __init__(
        self,
        author: Mapping[str, Any],
        columns: Mapping[str, str],
        how: How,
        **others: Mapping[str, str],
    ) -> None:
        spec = pipeline_from_mapping(author, Location("<random>"))
        schemas = {
            topic: tuple(Column(name, kind) for name, kind in some.items())
            for topic, some in {"t": columns, **others}.items()
        }
        plan = build_plan(spec, Config(), schemas).plan
        point = crashes(how.crashes)
        self.pipeline = LocalPipeline(
            plan,
            dict.fromkeys(schemas, range(1)),
            spread=how.spread,
            replay=how.replay,
            point=point,
        )
        self.rows: list[dict[str, Any]] = []

    def take(self, records: Sequence[Record], dice: Dice, most: int) -> None:
        """Run batches of at most so many records."""
        rest = list(records)
        while rest:
            size = dice.number(1, most)
            batch, rest = tuple(rest[:size]), rest[size:]
            made = self.pipeline.run(_table(batch), max(record.ts for record in batch))
            self._add(made.output.to_pylist())

    def end(self, batch_time: int) -> None:
        """Run the end of a bounded run."""
        self._add(self.pipeline.end(batch_time).output.to_pylist())

    def _add(self, rows: Sequence[dict[str, Any]]) -> None:
        assert all(row["kind"] == 0 for row in rows), "a dead letter"
        self.rows += rows
