"""Checks what a pipeline has written to one of its outputs."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from kaflow_engine.checks.results import CheckResult
from kaflow_engine.checks.rows import newest_partitions, table_rows, topic_rows
from kaflow_engine.checks.run import run_checks
from kaflow_engine.errors import ModelError
from kaflow_engine.flow.graph import columns_of
from kaflow_engine.flow.sinks import ConnectorSink, TableSink, TopicSink
from kaflow_engine.model.checks import checks_of
from kaflow_engine.model.config import Config
from kaflow_engine.model.outputs.output_specs import Write
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.runtime.planning.prepare import plan_pipeline


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What was looked at, and what was found."""

    what: str
    """For a sentence."""
    rows: int
    results: tuple[CheckResult, ...]


def check_output(
    spec: PipelineSpec, write: Write, config: Config, last: int, partitions: Sequence[str] = ()
) -> Checked:
    """Run the checks of an output over what its pipeline has written there.

    Args:
        spec: The pipeline.
        write: Which of its outputs.
        config: Where its output is.
        last: Milliseconds: of a topic, rows of that time before now.
        partitions: Of a table; none: the newest two.

    Raises:
        ModelError: The checks are wrong.
        KaflowError: The output cannot be read, or the checks cannot run.
    """
    checks = checks_of(spec, write)
    plan = plan_pipeline(spec, config).plan
    sink = plan.sinks[spec.writes.index(write)]
    match sink:
        case TableSink(table=table):
            wanted = list(partitions) or newest_partitions(table.path)
            rows = table_rows(table.path, wanted)
            what = f"table '{table.name}', {', '.join(wanted[:3])}{' …' if len(wanted) > 3 else ''}"
        case TopicSink(topic=topic, format=form, cluster=cluster):
            since = time.time_ns() // 1_000_000 - last
            rows = topic_rows(config, topic, form, columns_of(plan, sink), since, cluster)
            what = f"topic '{sink.target}'"
        case ConnectorSink(kind=kind):
            raise ModelError(f"'{kind}' cannot be read back", spec.place(*write.at))
        case _:
            assert_never(sink)
    return Checked(what=what, rows=rows.num_rows, results=run_checks(checks, rows))
