"""Checks what a pipeline has written to one of its outputs."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never, cast

import pyarrow as pa

from kaflow_engine.checks.results import CheckResult
from kaflow_engine.checks.rows import newest_partitions, table_rows, topic_rows
from kaflow_engine.checks.run import run_checks
from kaflow_engine.connectors.read_back import ReadableOutlet
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import columns_of
from kaflow_engine.flow.sinks import ConnectorSink, TableSink, TopicSink
from kaflow_engine.model.checks import MOST_ROWS, checks_of
from kaflow_engine.model.config import Config
from kaflow_engine.model.outputs.output_specs import Write
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.runtime.planning.prepare import plan_pipeline
from kaflow_engine.runtime.sink.opening import connections_of
from kaflow_engine.runtime.tasks.outputs import column_outputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What was looked at, and what was found."""

    what: str
    """For a sentence."""
    rows: int
    results: tuple[CheckResult, ...]


def check_output(
    spec: PipelineSpec,
    write: Write,
    config: Config,
    last: int,
    partitions: Sequence[str] = (),
    most: int = MOST_ROWS,
) -> Checked:
    """Run the checks of an output over what its pipeline has written there.

    Args:
        spec: The pipeline.
        write: Which of its outputs.
        config: Where its output is.
        last: Milliseconds: of a topic, rows of that time before now; of a folder, those of files
            that were written then.
        partitions: Of a table of the warehouse; none: the newest two.
        most: Rows that are read of a database, a catalog or a folder.

    Raises:
        ModelError: The checks are wrong.
        KaflowError: The output cannot be read, or the checks cannot run.
    """
    checks = checks_of(spec, write)
    plan = plan_pipeline(spec, config).plan
    sink = plan.sinks[spec.writes.index(write)]
    since = time.time_ns() // 1_000_000 - last
    match sink:
        case TableSink(table=table):
            wanted = list(partitions) or newest_partitions(table.path)
            rows = table_rows(table.path, wanted)
            what = f"table '{table.name}', {', '.join(wanted[:3])}{' …' if len(wanted) > 3 else ''}"
        case TopicSink(topic=topic, format=form, cluster=cluster):
            rows = topic_rows(config, topic, form, columns_of(plan, sink), since, cluster)
            what = f"topic '{sink.target}'"
        case ConnectorSink():
            rows = _connector_rows(plan, sink, config, since, most)
            some = f", {most:,} of its rows" if rows.num_rows == most else ""
            what = f"output '{sink.target}'{some}"
        case _:
            assert_never(sink)
    return Checked(what=what, rows=rows.num_rows, results=run_checks(checks, rows))


def _connector_rows(
    plan: Flow, sink: ConnectorSink, config: Config, since: int, most: int
) -> pa.Table:
    """Return what an output has whose kind a file names; planning refuses checks of others."""
    outputs = column_outputs(plan, connections_of(config))
    found = next(each for each in outputs if each.output.name == sink.target)
    return cast(ReadableOutlet, found.outlet).read(found.output, since, most)
