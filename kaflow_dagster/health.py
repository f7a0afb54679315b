"""What a stream counts of its own records, as checks of its asset: they cost it nothing."""
# pyright: reportUnknownMemberType=false
# Dagster's decorators are typed in part

from collections.abc import Iterator, Mapping, Sequence

import dagster as dg

from kaflow_dagster.names import dagster_name
from kaflow_dagster.translator import KaflowTranslator
from kaflow_dagster.views import PipelineView

COUNTED = {
    "no_dead_letters": ("kaflow/dead_letters", "No dead letters since the last report."),
    "no_late_records": ("kaflow/late", "No records behind the watermark since the last report."),
}
"""Check to what it looks at in the reports of a stream, and to what it says."""

Report = Mapping[str, dg.MetadataValue]


def evaluations(
    key: dg.AssetKey, before: Report | None, after: Report
) -> Iterator[dg.AssetCheckEvaluation]:
    """Yield what the difference of two reports of a stream says.

    Args:
        key: Of the stream.
        before: None: there was none.
        after: The newer one.
    """
    for check, (number, about) in COUNTED.items():
        total = _number(after, number)
        new = max(0, total - _number(before, number)) if before else total
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
        )


def last_reports(instance: dg.DagsterInstance, key: dg.AssetKey, most: int) -> Sequence[Report]:
    """Return the newest reports of a stream, newest first."""
    found = instance.fetch_materializations(key, limit=most).records
    return [each.asset_materialization.metadata for each in found if each.asset_materialization]


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
        reports = last_reports(context.instance, key, 2)
        if not reports:
            raise dg.Failure("the stream has not reported yet", allow_retries=False)
        wanted = {each.name for each in context.selected_asset_check_keys}
        for found in evaluations(key, reports[1] if reports[1:] else None, reports[0]):
            if found.check_name in wanted:
                yield dg.AssetCheckResult(
                    passed=found.passed,
                    asset_key=key,
                    check_name=found.check_name,
                    severity=found.severity,
                    description=found.description,
                    metadata=found.metadata,
                )

    return health


def _number(report: Report, name: str) -> int:
    value = report[name].value if name in report else 0
    return value if isinstance(value, int) else 0
