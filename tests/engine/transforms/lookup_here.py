"""A pipeline on this machine that looks rows up in a real database."""
# pyright: basic

import json

import pyarrow as pa

from kaflow_engine.errors import Location
from kaflow_engine.flow.records import RECORDS
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import pipeline_from_mapping
from kaflow_engine.plan.planner.pipeline_plan import build_plan
from kaflow_engine.runtime.planning.columns import resolve_columns
from kaflow_engine.runtime.sink.opening import connections_of
from kaflow_engine.testing.local.executor import LocalPipeline

START = 1_767_225_600_000


def spec_of(query, columns, about, beside, relations):
    return pipeline_from_mapping(
        {
            "name": "p",
            "topics": {"t": {"columns": columns}},
            "sources": {
                "users": {"type": "postgres", "table_name": "crm.users", "attached": True, **about},
                **beside,
            },
            "relations": dict(relations),
            "query": query,
            "output": {"topic": "out"},
        },
        Location("p.yaml"),
    )


class Running:
    """A pipeline on this machine, over a table as the database describes it."""

    def __init__(self, url, query, columns, about=(), beside=(), relations=(), **how):
        """Take the address of a server; or None, and a file in `about`."""
        kind = "mysql" if (url or "").startswith("mysql:") else "postgres"
        said = {kind: {"connections": {"default": {"url": url}} if url else {}}}
        config = Config.model_validate(said)
        spec = spec_of(query, columns, dict(about), dict(beside), relations)
        found = resolve_columns(spec, config, list(spec.sources))
        own = {"t": tuple(Column(name, kind) for name, kind in columns.items())}
        self.planned = build_plan(spec, config, {**own, **found})
        self.pipeline = LocalPipeline(
            self.planned.plan, {"t": range(2)}, connections=connections_of(config).known, **how
        )

    def rows(self, *values):
        """Run one batch, and return what left of it."""
        records = [
            {
                "topic": "t",
                "partition": number % 2,
                "offset": number // 2,
                "timestamp": START + number,
                "key": None,
                "value": json.dumps(value).encode(),
                "headers": [],
            }
            for number, value in sorted(enumerate(values), key=lambda each: each[0] % 2)
        ]
        self.done = self.pipeline.run(pa.Table.from_pylist(records, schema=RECORDS), START)
        out = self.done.output.to_pylist()
        return [json.loads(row["value"]) for row in out if row["topic"] == "out"]
