"""Checks what a pipeline has written."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from kaflow_engine.checks.results import CheckResult
from kaflow_engine.checks.rows import newest_partitions, table_rows, topic_rows
from kaflow_engine.checks.run import run_checks
from kaflow_engine.flow.graph import only_sink, output_columns, output_format, output_table
from kaflow_engine.model.checks import checks_of
from kaflow_engine.model.config import Config
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
    spec: PipelineSpec, config: Config, last: int, partitions: Sequence[str] = ()
) -> Checked:
    """Run the checks of a pipeline over what it has written.

    Args:
        spec: The pipeline.
        config: Where its output is.
        last: Milliseconds: of a topic, rows of that time before now.
        partitions: Of a table; none: the newest two.

    Raises:
        ModelError: The checks are wrong.
        KaflowError: The output cannot be read, or the checks cannot run.
    """
    checks = checks_of(spec)
    plan = plan_pipeline(spec, config).plan
    table = output_table(plan)
    if table is not None:
        wanted = list(partitions) or newest_partitions(table.path)
        rows = table_rows(table.path, wanted)
        what = f"table '{table.name}', {', '.join(wanted[:3])}{' …' if len(wanted) > 3 else ''}"
    else:
        since = time.time_ns() // 1_000_000 - last
        target = only_sink(plan).target
        rows = topic_rows(config, target, output_format(plan), output_columns(plan), since)
        what = f"topic '{target}'"
    return Checked(what=what, rows=rows.num_rows, results=run_checks(checks, rows))
