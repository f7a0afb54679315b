"""Checks of what pipelines write, as Dagster's asset checks."""

import json
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime, timedelta

import dagster as dg

from kaflow_dagster.assets.translator import KaflowTranslator
from kaflow_dagster.assets.views import PipelineOutput, PipelineView, ProjectView
from kaflow_dagster.runs.background import failure
from kaflow_dagster.runs.begun import BEGUN
from kaflow_dagster.runs.names import dagster_name
from kaflow_engine.api.checks import CheckResult
from kaflow_engine.api.errors import KaflowError, ModelError
from kaflow_engine.api.project import PipelineSpec, Write, with_brought

LAST_MS = 300_000
"""Of a topic, how far back rows are looked at: as long as the time between two scheduled looks."""

_SCHEDULE = "*/5 * * * *"
_LONGEST = timedelta(hours=1)


def check_specs(
    output: PipelineOutput, key: dg.AssetKey, blocking: bool = False
) -> list[dg.AssetCheckSpec]:
    """Return the checks of an asset.

    Args:
        output: What is written to it.
        key: Of the asset.
        blocking: Whether what depends on the asset waits for those that are errors.
    """
    return [
        dg.AssetCheckSpec(
            check.name, asset=key, description=check.about, blocking=blocking and check.is_error
        )
        for check in output.about.checks
    ]


def build_checks(
    pipeline: PipelineView, project: ProjectView, translator: KaflowTranslator
) -> dg.AssetChecksDefinition | None:
    """Return the checks of what a pipeline writes; None where there are none.

    Those of tables of the warehouse belong to their backfills.
    """
    outputs = {
        translator.output_key(output): output
        for output in pipeline.written
        if output.part.table is None and output.checks
    }
    if not outputs:
        return None

    @dg.multi_asset_check(
        name=dagster_name("check", pipeline.name),
        specs=[each for key, output in outputs.items() for each in check_specs(output, key)],
        can_subset=True,
    )
    def check(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        for key, output in outputs.items():
            wanted = {c.name for c in context.selected_asset_check_keys if c.asset_key == key}
            if wanted:
                yield from checked(project, output, key, wanted)

    return check


def build_check_schedule(
    pipeline: PipelineView, translator: KaflowTranslator
) -> dg.ScheduleDefinition | None:
    """Return what looks at outputs every five minutes; None where nothing is checked.

    It does not look again while its last look goes on, unless that one is older than an hour: the
    machine may have ended under it.
    """
    checks = [
        dg.AssetCheckKey(translator.output_key(output), name)
        for output in pipeline.written
        for name in output.checks
    ]
    if not checks:
        return None
    job = dg.define_asset_job(
        dagster_name("checks", pipeline.name),
        selection=dg.AssetSelection.checks(*checks),
        tags={"kaflow/kind": "checks"},
        # it has one step, and what a check reads is looked at in a process of its own
        executor_def=dg.in_process_executor,
    )

    def look(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        oldest = datetime.now(UTC) - _LONGEST
        going_on = dg.RunsFilter(job_name=job.name, statuses=BEGUN, created_after=oldest)
        if context.instance.get_runs_count(going_on):
            return dg.SkipReason("the checks of the last time have not ended")
        return dg.RunRequest()

    name = dagster_name("check_regularly", pipeline.name)
    return dg.ScheduleDefinition(name=name, job=job, cron_schedule=_SCHEDULE, execution_fn=look)


def checked(
    project: ProjectView,
    output: PipelineOutput,
    key: dg.AssetKey,
    wanted: Collection[str],
    partitions: Sequence[str] = (),
) -> Iterator[dg.AssetCheckResult]:
    """Run the checks of an output, and yield those that are wanted.

    Args:
        project: Where the pipeline is read again.
        output: Which one.
        key: Of its asset.
        wanted: Names of checks.
        partitions: Of a table; none: the newest two.
    """
    from kaflow_engine.api.checks import check_output

    try:
        config = project.load_config()
        spec = project.load(output.pipeline.name, config)
        config = with_brought(config, [spec])
        found = check_output(spec, _write(spec, output), config, LAST_MS, partitions)
    except KaflowError as error:
        raise failure(error) from None
    for result in found.results:
        if result.check.name in wanted:
            yield _result(result, key, found.what)


def carry_over(instance: dg.DagsterInstance, key: dg.AssetKey, checks: Sequence[str]) -> None:
    """Report once more what runs of checks found, so that it stays on an asset that is alive.

    Dagster shows an evaluation until the next materialization of its asset, unless both belong to
    the same run, or, as here, to none.
    """
    keys = [dg.AssetCheckKey(key, name) for name in checks]
    found = instance.event_log_storage.get_latest_asset_check_execution_by_key(keys)
    for record in found.values():
        evaluation = record.evaluation
        if not isinstance(evaluation, dg.AssetCheckEvaluation) or not record.run_id:
            continue  # a check that still runs, or a copy
        run = dg.MetadataValue.dagster_run(record.run_id)
        instance.report_runless_asset_event(
            dg.AssetCheckEvaluation(
                asset_key=key,
                check_name=evaluation.check_name,
                passed=evaluation.passed,
                severity=evaluation.severity,
                description=evaluation.description,
                metadata={**evaluation.metadata, "kaflow/run": run},
                target_materialization_data=evaluation.target_materialization_data,
            )
        )


def _write(spec: PipelineSpec, output: PipelineOutput) -> Write:
    for write in spec.writes:
        if (write.output.topic, write.target) == (output.part.topic, output.part.target):
            return write
    raise ModelError(f"pipeline '{spec.name}' does not write '{output.part.target}' any more")


def _result(result: CheckResult, key: dg.AssetKey, what: str) -> dg.AssetCheckResult:
    metadata: dict[str, dg.MetadataValue] = {
        "kaflow/of": dg.MetadataValue.text(what),
        "kaflow/rows": dg.MetadataValue.int(result.rows),
        "kaflow/failed": dg.MetadataValue.int(result.failed),
        "kaflow/expectation": dg.MetadataValue.text(result.check.expectation),
        "kaflow/arguments": dg.MetadataValue.json(dict(result.check.arguments)),
    }
    if result.words is not None:
        metadata["kaflow/words"] = dg.MetadataValue.text(result.words)
    if result.rows:
        share = 100 * result.failed / result.rows
        metadata["kaflow/failed_percent"] = dg.MetadataValue.float(round(share, 3))
    if result.observed is not None:
        metadata["kaflow/observed"] = dg.MetadataValue.text(
            json.dumps(result.observed, default=str)
        )
    if result.error is not None:
        metadata["kaflow/error"] = dg.MetadataValue.text(result.error)
    if result.sample:
        rows = [{name: _cell(value) for name, value in row.items()} for row in result.sample]
        metadata["kaflow/sample"] = dg.MetadataValue.table([dg.TableRecord(row) for row in rows])
    warn, error = dg.AssetCheckSeverity.WARN, dg.AssetCheckSeverity.ERROR
    return dg.AssetCheckResult(
        passed=result.passed,
        asset_key=key,
        check_name=result.check.name,
        severity=error if result.check.severity == "error" else warn,
        metadata=metadata,
    )


def _cell(value: object) -> str | int | float | bool:
    return value if isinstance(value, str | int | float | bool) else str(value)
