"""Pipelines that end: assets that a run materializes, without a switch."""

from collections.abc import Iterator

import dagster as dg

from kaflow_dagster.assets.props import StreamProps
from kaflow_dagster.assets.translator import KaflowTranslator
from kaflow_dagster.assets.units import StreamUnit
from kaflow_dagster.assets.views import ProjectView
from kaflow_dagster.runs.names import dagster_name
from kaflow_dagster.streams.outputs import NEWEST
from kaflow_dagster.streams.reports import assets_of
from kaflow_dagster.streams.session import session_of


def build_job_assets(
    unit: StreamUnit, project: ProjectView, translator: KaflowTranslator, newest: int = NEWEST
) -> dg.AssetsDefinition:
    """Return the assets of pipelines whose sources all end; a run of them reads to these ends.

    One that is cut off goes on where it was; one that has ended finds nothing to do.

    Args:
        unit: A pipeline, or a group.
        project: Where it is read again.
        translator: Decides what the assets look like, and names those that get the reports.
        newest: Rows of each output that a report shows.
    """
    specs = [translator.get_asset_spec(StreamProps(pipeline=each)) for each in unit.pipelines]
    assets = {each.name: assets_of(each, translator) for each in unit.pipelines}

    @dg.multi_asset(
        name=dagster_name("run", unit.name),
        specs=specs,
        op_tags={"kaflow/kind": "job"},
        pool=dagster_name("run", unit.name),
    )
    def run(context: dg.AssetExecutionContext) -> Iterator[object]:
        last: dict[dg.AssetKey, dg.AssetMaterialization] = {}
        made = {spec.key for spec in specs}
        for event in session_of(context.op_execution_context, project, assets, newest):
            if not isinstance(event, dg.AssetMaterialization):
                continue
            shown: dg.AssetMaterialization | None = event
            if event.asset_key in made:  # its last report is what the run itself says in the end
                shown = last.get(event.asset_key)
                last[event.asset_key] = event
            if shown is not None:
                context.log_event(shown)
        for key in made:
            yield dg.MaterializeResult(
                asset_key=key, metadata=last[key].metadata if key in last else None
            )

    return run
