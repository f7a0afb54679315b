"""Checks of what pipelines write, as Dagster's asset checks."""

import json
from collections.abc import Collection, Iterator, Sequence

import dagster as dg

from kaflow_dagster.assets.translator import KaflowTranslator
from kaflow_dagster.assets.views import PipelineView, ProjectView
from kaflow_dagster.runs.background import failure
from kaflow_dagster.runs.names import dagster_name
from kaflow_engine.api.checks import CheckResult
from kaflow_engine.api.errors import KaflowError

LAST_MS = 300_000
"""Of a topic, how far back rows are looked at: as long as the time between two scheduled looks."""

_SCHEDULE = "*/5 * * * *"


def check_specs(
    pipeline: PipelineView, key: dg.AssetKey, blocking: bool = False
) -> list[dg.AssetCheckSpec]:
    """Return the checks of an asset.

    Args:
        pipeline: Which writes it.
        key: Of the asset.
        blocking: Whether what depends on the asset waits for those that are errors.
    """
    return [
        dg.AssetCheckSpec(
            check.name, asset=key, description=check.about, blocking=blocking and check.is_error
        )
        for check in pipeline.checks
    ]


def build_topic_checks(
    pipeline: PipelineView, project: ProjectView, translator: KaflowTranslator
) -> dg.AssetChecksDefinition | None:
    """Return the checks of an output topic; None where there are none, or a table is written."""
    explained = pipeline.explanation
    key = translator.output_key(pipeline)
    if key is None or not pipeline.checks or (explained and explained.output_table):
        return None

    @dg.multi_asset_check(
        name=dagster_name("check", pipeline.name),
        specs=check_specs(pipeline, key),
        can_subset=True,
    )
    def check(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        wanted = {each.name for each in context.selected_asset_check_keys}
        yield from checked(project, pipeline.name, key, wanted)

    return check


def build_check_schedule(
    pipeline: PipelineView, translator: KaflowTranslator
) -> dg.ScheduleDefinition | None:
    """Return what looks at an output every five minutes; None where nothing is checked."""
    key = translator.output_key(pipeline)
    if key is None or not pipeline.checks:
        return None
    job = dg.define_asset_job(
        dagster_name("checks", pipeline.name),
        selection=dg.AssetSelection.checks(
            *(dg.AssetCheckKey(key, check.name) for check in pipeline.checks)
        ),
        tags={"kaflow/kind": "checks"},
    )
    name = dagster_name("check_regularly", pipeline.name)
    return dg.ScheduleDefinition(name=name, job=job, cron_schedule=_SCHEDULE)


def checked(
    project: ProjectView,
    name: str,
    key: dg.AssetKey,
    wanted: Collection[str],
    partitions: Sequence[str] = (),
) -> Iterator[dg.AssetCheckResult]:
    """Run the checks of a pipeline, and yield those that are wanted.

    Args:
        project: Where the pipeline is read anew.
        name: Of the pipeline.
        key: Of the asset that it writes.
        wanted: Names of checks.
        partitions: Of a table; none: the newest two.
    """
    from kaflow_engine.api.checks import check_output

    try:
        config = project.load_config()
        found = check_output(project.load(name, config), config, LAST_MS, partitions)
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
        if evaluation is None or not record.run_id:
            continue
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
