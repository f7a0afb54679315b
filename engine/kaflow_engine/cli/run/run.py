"""`kaflow run`: run pipelines."""

from pathlib import Path

import click

from kaflow_engine.cli.explain import print_plans
from kaflow_engine.cli.options import (
    allow_option,
    allowances,
    config_option,
    configuration,
    files_argument,
    files_named,
    json_option,
    master_option,
    set_option,
    with_config,
)
from kaflow_engine.cli.output import say_notices
from kaflow_engine.cli.run.progress_file import progress_file
from kaflow_engine.cli.run.running import Manner, run_in_front
from kaflow_engine.cli.stopping import stop_requests
from kaflow_engine.model.configuration.with_brought import with_brought
from kaflow_engine.plan.planner.project import load_checked


@click.command("run")
@files_argument
@click.option(
    "--until-caught-up", is_flag=True, help="End when what the topics hold now has been read."
)
@click.option(
    "--max-records",
    "--max-msgs-to-process",
    type=click.IntRange(min=1),
    help="End each pipeline after about so many records.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Check the files, ask for columns that no file declares, show what each pipeline will do, "
    "and end.",
)
@click.option("--plain", is_flag=True, help="Print lines instead of a live table.")
@click.option(
    "--progress",
    "progress_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Append what each batch did to this file, one JSON object a line.",
)
@click.option(
    "--metrics",
    type=click.Choice(["prometheus"]),
    expose_value=False,
    help="As SQLFlow has it: metrics are at http.port anyway, those of its files by its names too.",
)
@config_option
@set_option
@allow_option
@master_option
@json_option
def command(
    paths: tuple[Path, ...],
    until_caught_up: bool,
    max_records: int | None,
    dry_run: bool,
    plain: bool,
    progress_path: Path | None,
    config_path: Path | None,
    settings: tuple[str, ...],
    allowed: tuple[str, ...],
    master: str | None,
    as_json: bool,
) -> None:
    """Run the pipelines of files and folders until Ctrl-C, each in a stream of its own.

    A stop by Ctrl-C or SIGTERM finishes the batch that runs. The next run goes on from there.
    """
    paths, config_path = with_config(files_named(paths), config_path)
    config = configuration(config_path, (*settings, *allowances(allowed)), master)
    project = load_checked(paths, config)
    say_notices(project.notices)
    if dry_run:
        print_plans(project.pipelines, config, connect=True, as_json=as_json)
        return
    manner = Manner(
        until_caught_up=until_caught_up, max_records=max_records, plain=plain, as_json=as_json
    )
    with stop_requests() as asked, progress_file(progress_path) as note:
        run_in_front(
            project.pipelines, with_brought(config, project.pipelines), manner, asked, note
        )
