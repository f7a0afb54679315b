"""What a stream counts of its own records, as checks of its asset: they cost it nothing."""

from collections.abc import Iterator

import dagster as dg
from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluationTargetMaterializationData,
)

from kaflow_dagster.assets.translator import KaflowTranslator
from kaflow_dagster.assets.views import PipelineView
from kaflow_dagster.runs.names import dagster_name

COUNTED = {
    "no_dead_letters": ("kaflow/dead_letters", "No dead letters since the last report."),
    "no_late_records": ("kaflow/late", "No records behind the watermark since the last report."),
}
"""Check to what it looks at in the reports of a stream, and to what it says."""


def evaluations(
    instance: dg.DagsterInstance, key: dg.AssetKey
) -> Iterator[dg.AssetCheckEvaluation]:
    """Yield what the last two reports of a stream say together; nothing where there is none."""
    found = instance.fetch_materializations(key, limit=2).records
    if not found:
        return
    last = found[0]
    for check, (number, about) in COUNTED.items():
        total, before = _number(last, number), _number(found[1], number) if found[1:] else 0
        new = max(0, total - before)  # a stream that was started again counts from nothing
        yield dg.AssetCheckEvaluation(
            asset_key=key,
            check_name=check,
            passed=new == 0,
            severity=dg.AssetCheckSeverity.WARN,
            description=about,
            metadata={
                "kaflow/new": dg.MetadataValue.int(new),
                "kaflow/total": dg.MetadataValue.int(total),
            },
            # without it the page takes the check for one that was not evaluated
            target_materialization_data=AssetCheckEvaluationTargetMaterializationData(
                storage_id=last.storage_id, run_id=last.run_id, timestamp=last.timestamp
            ),
        )


def build_stream_checks(
    pipeline: PipelineView, translator: KaflowTranslator
) -> dg.AssetChecksDefinition:
    """Return the checks that a stream evaluates itself; a run of them looks at its last reports."""
    key = translator.stream_key(pipeline)

    @dg.multi_asset_check(
        name=dagster_name("health", pipeline.name),
        specs=[
            dg.AssetCheckSpec(name, asset=key, description=about)
            for name, (_, about) in COUNTED.items()
        ],
        can_subset=True,
    )
    def health(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        found = list(evaluations(context.instance, key))
        if not found:
            raise dg.Failure("the stream has not reported yet", allow_retries=False)
        wanted = {each.name for each in context.selected_asset_check_keys}
        for each in found:
            if each.check_name in wanted:
                yield dg.AssetCheckResult(
                    passed=each.passed,
                    asset_key=key,
                    check_name=each.check_name,
                    severity=each.severity,
                    description=each.description,
                    metadata=each.metadata,
                )

    return health


def _number(report: dg.EventLogRecord, name: str) -> int:
    materialization = report.asset_materialization
    value = materialization.metadata.get(name) if materialization else None
    return value.value if isinstance(value, dg.IntMetadataValue) and value.value else 0
