"""All that Dagster shows of a project: assets, a job and a sensor for each pipeline or group."""

from collections.abc import Sequence
from pathlib import Path

import dagster as dg

from kaflow_dagster.assets.specs import build_kaflow_specs, tables_of
from kaflow_dagster.assets.translator import KaflowTranslator
from kaflow_dagster.assets.units import units_of
from kaflow_dagster.assets.views import ProjectView, view_project
from kaflow_dagster.checks.output_checks import build_check_schedule, build_checks
from kaflow_dagster.checks.stream_checks import build_stream_checks
from kaflow_dagster.runs.names import PIPELINE, VERSION, dagster_name
from kaflow_dagster.streams.jobs import build_job_assets
from kaflow_dagster.streams.outputs import NEWEST
from kaflow_dagster.streams.preview import build_preview_job
from kaflow_dagster.streams.redrive import build_redrive_job
from kaflow_dagster.streams.sensor import build_supervisor, with_switches
from kaflow_dagster.streams.session import build_stream_job
from kaflow_dagster.streams.supervision import SupervisionLimits
from kaflow_dagster.tables.backfill import build_backfill_schedule, build_tables
from kaflow_engine.api.errors import ModelError


def build_kaflow_defs(
    paths: Sequence[Path],
    config: Path | None = None,
    translator: KaflowTranslator | None = None,
    patience: SupervisionLimits | None = None,
    pyspark: str | None = None,
    newest_rows: int = NEWEST,
) -> dg.Definitions:
    """Read a project and return its definitions; a broken pipeline is shown as such.

    Args:
        paths: Pipeline files and folders.
        config: The configuration file; None: defaults and the environment.
        translator: Decides what assets look like.
        patience: When supervision acts.
        pyspark: The key of a LazyPySparkResource of dagster-pyspark that backfills take their
            Spark settings from; the resource itself is defined beside.
        newest_rows: So many of each topic and table are shown with every report of its stream, and
            kept in Dagster's storage; 0: none.
    """
    return defs_of(view_project(paths, config), translator, patience, pyspark, newest_rows)


def defs_of(
    project: ProjectView,
    translator: KaflowTranslator | None = None,
    patience: SupervisionLimits | None = None,
    pyspark: str | None = None,
    newest_rows: int = NEWEST,
) -> dg.Definitions:
    """Return the definitions of a project that has been read.

    Raises:
        ModelError: There is nothing to show: the configuration or the paths are wrong.
    """
    if project.problems and not project.pipelines:
        raise ModelError("\n".join(project.problems))  # an empty page would look like a success
    translate = translator or KaflowTranslator()
    units = units_of(project)
    ending = [
        (unit, build_job_assets(unit, project, translate, newest_rows))
        for unit in units
        if unit.ends
    ]
    streams = [unit for unit in units if not unit.ends]
    jobs = {
        unit.name: build_stream_job(unit, project, translate, newest_rows)
        for unit in streams
        if unit.problem is None
    }
    sensors = [build_supervisor(unit, project, jobs.get(unit.name), patience) for unit in streams]
    tables = [
        (found, build_tables(found, project, translate, pyspark))
        for each in project.pipelines
        if (found := tables_of([each]))
    ]
    checks = [build_checks(each, project, translate) for each in project.pipelines]
    sound = [each for each in project.pipelines if each.explanation is not None]
    schedules = [
        *(build_check_schedule(each, translate) for each in project.pipelines),
        *(build_backfill_schedule(found, filled, project) for found, filled in tables),
    ]
    made = {key for _, assets in ending for key in assets.keys}
    specs = [spec for spec in build_kaflow_specs(project, translate) if spec.key not in made]
    return dg.Definitions(
        assets=[
            *with_switches(specs, streams, translate),
            *(assets for _, assets in ending),
            *(filled for _, filled in tables),
        ],
        jobs=[
            *jobs.values(),
            *(
                dg.define_asset_job(
                    dagster_name("job", unit.name),
                    selection=[assets],
                    description=f"Runs {unit.about} until all that it reads has ended.",
                    # in a process of its own a step would go on when that of the run is killed
                    executor_def=dg.in_process_executor,
                    tags={PIPELINE: unit.name, VERSION: unit.version, "dagster/max_retries": "0"},
                )
                for unit, assets in ending
            ),
            *(build_preview_job(each, project) for each in sound),
            *(
                build_redrive_job(each, project, translate)
                for each in sound
                if each.explanation is not None and each.explanation.dead_letters is not None
            ),
            *(
                dg.define_asset_job(
                    f"{filled.op.name}_job", selection=[filled], tags={"kaflow/kind": "backfill"}
                )
                for _, filled in tables
            ),
        ],
        sensors=sensors,
        asset_checks=[
            *(each for each in checks if each is not None),
            *(build_stream_checks(each, translate) for each in sound),
        ],
        schedules=[each for each in schedules if each is not None],
    )
