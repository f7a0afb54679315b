"""Tables as partitioned assets: a run fills a range of partitions from the topics, of all tables
of a pipeline."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from threading import Event
from typing import Any, cast

import dagster as dg

from kaflow_dagster.assets.props import TableProps
from kaflow_dagster.assets.translator import KaflowTranslator, partitions_of
from kaflow_dagster.assets.views import ProjectView
from kaflow_dagster.checks.output_checks import check_specs, checked
from kaflow_dagster.runs.background import Background, failure
from kaflow_dagster.runs.names import dagster_name
from kaflow_engine.api.errors import KaflowError
from kaflow_engine.api.plan import Backfill
from kaflow_engine.api.project import Config
from kaflow_engine.api.status import Progress

REPORT_S = 10.0

_OPTIONS = {
    "force": dg.Field(
        bool,
        default_value=False,
        is_required=False,
        description="Also where the stream may still write, or rows would go that are not made "
        "again.",
    ),
    "restart": dg.Field(
        bool,
        default_value=False,
        is_required=False,
        description="Do not go on with an earlier, unfinished try.",
    ),
}


# Dagster warns of a call of its own, which it makes for every asset that has checks.
warnings.filterwarnings("ignore", r"Parameter `execution_type` of function `AssetsDefinition")


def build_tables(
    tables: Sequence[TableProps],
    project: ProjectView,
    translator: KaflowTranslator,
    pyspark: str | None = None,
) -> dg.AssetsDefinition:
    """Return the assets of a pipeline's tables; materializing one is a backfill, which fills all
    of them, one run for all partitions.

    Their checks run after a backfill, over the partitions that it filled, and alone, over the
    newest two.

    Args:
        tables: All of the pipeline; their partitions are the same.
        project: Where its pipeline is read again.
        translator: Decides what the asset looks like.
        pyspark: The key of a LazyPySparkResource of dagster-pyspark, whose settings go over those
            of the configuration.
    """
    name = tables[0].pipeline.name
    specs = [translator.get_asset_spec(table) for table in tables]
    outputs = {spec.key: table.output for spec, table in zip(specs, tables, strict=True)}

    @dg.multi_asset(
        name=dagster_name("backfill", name),
        specs=specs,
        check_specs=[
            check
            for key, output in outputs.items()
            for check in check_specs(output, key, blocking=True)
        ],
        can_subset=True,
        backfill_policy=dg.BackfillPolicy.single_run(),
        config_schema=_OPTIONS,
        op_tags={"kaflow/kind": "backfill"},
        pool="kaflow_backfills",
        required_resource_keys={pyspark} if pyspark else set(),
    )
    def fill(context: dg.AssetExecutionContext) -> Iterator[object]:
        partitions: list[str] = []
        wanted = context.selected_asset_keys & set(outputs)
        if wanted:
            window = context.partition_time_window
            span = Backfill(start=_milliseconds(window.start), end=_milliseconds(window.end))
            metadata = _metadata(_fill(context, project, name, span, pyspark))
            partitions = list(context.partition_keys)
            for key in outputs:
                if key in wanted:
                    yield dg.MaterializeResult(asset_key=key, metadata=metadata)
                else:  # it was filled all the same
                    _note(context, key, partitions, metadata)
        for key, output in outputs.items():
            checks = {c.name for c in context.selected_asset_check_keys if c.asset_key == key}
            if checks:
                yield from checked(project, output, key, checks, partitions)

    return fill


def build_backfill_schedule(
    tables: Sequence[TableProps], filled: dg.AssetsDefinition, project: ProjectView
) -> dg.ScheduleDefinition | None:
    """Return what fills the newest partition that has settled; None where no one asks for that.

    Args:
        tables: All of the pipeline; their partitions are the same.
        filled: Their assets.
        project: Where the pipeline is read again.
    """
    pipeline, part = tables[0].pipeline.name, tables[0].part
    names = ", ".join(f"`{table.name}`" for table in tables)
    if part.schedule is None:
        return None

    def newest(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        from kaflow_engine.api.state import last_settled

        now = _milliseconds(context.scheduled_execution_time)
        try:
            config = project.load_config()
            spec = project.load(pipeline, config)
            key = last_settled(spec, config, now)
        except KaflowError as error:
            return dg.SkipReason(str(error))
        if key < (partitions_of(part).get_first_partition_key() or ""):
            return dg.SkipReason(f"the newest partition that has settled is {key}")
        return dg.RunRequest(partition_key=key)

    return dg.ScheduleDefinition(
        name=dagster_name("fill", pipeline),
        target=[filled],
        cron_schedule=part.schedule,
        execution_timezone="UTC",
        execution_fn=newest,
        description=f"Fills the newest partition of {names} to which the stream writes no more.",
    )


def spark_settings(resource: object) -> Mapping[str, str]:
    """Return the settings of a resource of dagster-pyspark.

    Raises:
        Failure: It is one that starts a session by itself, without the jars of ours.
    """
    from dagster_pyspark import LazyPySparkResource

    if not isinstance(resource, LazyPySparkResource):
        raise dg.Failure(
            f"a backfill takes its Spark settings from a LazyPySparkResource, and this is a "
            f"{type(resource).__name__}, which has started a session already",
            allow_retries=False,
        )
    return dict(_flat(resource.spark_config))


def _flat(settings: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """Yield settings under their full names: dagster-pyspark takes them nested, too."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(cast(Mapping[str, Any], value), f"{above}{name}.")
        else:
            yield f"{above}{name}", str(value)


def _fill(
    context: dg.AssetExecutionContext,
    project: ProjectView,
    name: str,
    wanted: Backfill,
    pyspark: str | None,
) -> Progress:
    """Run a backfill beside the thread that reports; return its last progress."""
    options = context.op_execution_context.op_config
    try:
        config = project.load_config()
    except KaflowError as error:
        raise failure(error) from None
    if pyspark is not None:
        config = with_spark(config, spark_settings(getattr(context.resources, pyspark)))
    newest: dict[str, Progress] = {}

    def work(stop: Event) -> None:
        _run(project, name, config, wanted, options, stop, newest)

    with Background(work, config.drain_deadline) as thread:
        while thread.runs_after(REPORT_S):
            for at in newest.values():
                context.log.info(f"{at.state}: batch {at.batch}, {at.records} records")
    if thread.error is not None:
        raise failure(thread.error) from None
    return newest[name]


def with_spark(config: Config, settings: Mapping[str, str]) -> Config:
    """Return a configuration with other settings of Spark over its own."""
    conf = dict(settings)
    master = conf.pop("spark.master", config.spark.master)
    conf = {**config.spark.conf, **conf}
    spark = config.spark.model_copy(update={"master": master, "conf": conf})
    return config.model_copy(update={"spark": spark})


def _run(
    project: ProjectView,
    name: str,
    config: Config,
    wanted: Backfill,
    options: dict[str, bool],
    stop: Event,
    newest: dict[str, Progress],
) -> None:
    from kaflow_engine.api.run import Waiting, prepare, run_backfill
    from kaflow_engine.api.state import check_backfill

    spec = project.load(name, config)
    wanted = replace(wanted, slack=spec.backfill.slack, force=options["force"])
    check_backfill(spec, config, wanted)
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


def _note(
    context: dg.AssetExecutionContext,
    key: dg.AssetKey,
    partitions: Sequence[str],
    metadata: Mapping[str, dg.MetadataValue],
) -> None:
    for partition in partitions:
        context.log_event(
            dg.AssetMaterialization(asset_key=key, partition=partition, metadata=metadata)
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
