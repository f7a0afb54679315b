"""Tables as partitioned assets: a run fills a range of partitions from the topics."""
# pyright: reportUnknownMemberType=false
# Dagster's decorators are typed in part

from collections.abc import Iterator
from datetime import datetime
from threading import Event

import dagster as dg

from kaflow_dagster.background import Background, failure
from kaflow_dagster.checks import check_specs, checked
from kaflow_dagster.names import dagster_name
from kaflow_dagster.translator import KaflowTranslator, TableProps
from kaflow_dagster.views import ProjectView
from kaflow_engine.errors import KaflowError
from kaflow_engine.model.config import Config
from kaflow_engine.operators.params import Backfill
from kaflow_engine.runtime.progress import Progress

REPORT_S = 10.0

_OPTIONS = {
    "force": dg.Field(
        bool,
        default_value=False,
        is_required=False,
        description="Also over partitions that the stream may still write to.",
    ),
    "restart": dg.Field(
        bool,
        default_value=False,
        is_required=False,
        description="Do not go on with an earlier, unfinished try.",
    ),
}


def build_table(
    table: TableProps, project: ProjectView, translator: KaflowTranslator
) -> dg.AssetsDefinition:
    """Return the asset of a table; materializing it is a backfill, one run for all partitions.

    Its checks run after a backfill, over the partitions that it filled, and alone, over the newest.

    Args:
        table: Which one.
        project: Where its pipeline is read anew.
        translator: Decides what the asset looks like.
    """
    name = table.pipeline.name
    spec = translator.get_asset_spec(table)

    @dg.multi_asset(
        name=dagster_name("backfill", name),
        specs=[spec],
        check_specs=check_specs(table.pipeline, spec.key, blocking=True),
        can_subset=True,
        backfill_policy=dg.BackfillPolicy.single_run(),
        config_schema=_OPTIONS,
        op_tags={"kaflow/kind": "backfill"},
        pool="kaflow_backfills",
    )
    def fill(context: dg.AssetExecutionContext) -> Iterator[object]:
        partitions: list[str] = []
        if spec.key in context.selected_asset_keys:
            window = context.partition_time_window
            wanted = Backfill(start=_milliseconds(window.start), end=_milliseconds(window.end))
            done = _fill(context, project, name, wanted)
            yield dg.MaterializeResult(asset_key=spec.key, metadata=_metadata(done))
            partitions = list(context.partition_keys)
        names = {key.name for key in context.selected_asset_check_keys}
        if names:
            yield from checked(project, name, spec.key, names, partitions)

    return fill


def _fill(
    context: dg.AssetExecutionContext, project: ProjectView, name: str, wanted: Backfill
) -> Progress:
    """Run a backfill beside the thread that reports; return its last progress."""
    options = context.op_execution_context.op_config
    try:
        config = project.load_config()
    except KaflowError as error:
        raise failure(error) from error
    newest: dict[str, Progress] = {}

    def work(stop: Event) -> None:
        _run(project, name, config, wanted, options, stop, newest)

    with Background(work, config.drain_deadline) as thread:
        while thread.runs_after(REPORT_S):
            for at in newest.values():
                context.log.info(f"{at.state}: batch {at.batch}, {at.records} records")
    if thread.error is not None:
        raise failure(thread.error) from thread.error
    return newest[name]


def _run(
    project: ProjectView,
    name: str,
    config: Config,
    wanted: Backfill,
    options: dict[str, bool],
    stop: Event,
    newest: dict[str, Progress],
) -> None:
    from kaflow_engine.plan.owner import check_backfill
    from kaflow_engine.runtime.application import run_backfill
    from kaflow_engine.runtime.prepare import Waiting, prepare

    spec = project.load(name, config)
    wanted = Backfill(start=wanted.start, end=wanted.end, slack=spec.backfill.slack)
    check_backfill(spec, config, wanted, options["force"])
    (planned,) = prepare([spec], config, waiting=Waiting(stopped=stop.is_set))

    def note(progress: Progress) -> None:
        newest[progress.pipeline] = progress

    run_backfill(
        planned.plan,
        config,
        wanted,
        restart=options["restart"],
        on_progress=note,
        stop=stop,
    )


def _metadata(progress: Progress) -> dict[str, dg.MetadataValue]:
    return {
        "kaflow/mode": dg.MetadataValue.text("backfill"),
        "kaflow/records": dg.MetadataValue.int(progress.records),
        "kaflow/dead_letters": dg.MetadataValue.int(progress.dead_letters),
        "kaflow/batches": dg.MetadataValue.int(progress.batch),
    }


def _milliseconds(at: datetime) -> int:
    return round(at.timestamp() * 1000)
