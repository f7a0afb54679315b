"""`kaflow doctor`: what this machine has and what it lacks."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import get_args

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kaflow_engine.cli.options import config_option, configuration, json_option, with_config
from kaflow_engine.errors import ModelError
from kaflow_engine.model.configuration.load_config import find_config
from kaflow_engine.model.files.yaml_file import raise_as_found
from kaflow_engine.model.project import read_project
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.needed_extras import needed_extras
from kaflow_engine.runtime.spark.class_archive import make_spark_archive
from kaflow_engine.runtime.spark.jars import Bundle, fetch
from kaflow_engine.runtime.spark.machine import Check, inspect_machine
from kaflow_engine.testing.services.broker import make_broker_archive

_COLOURS = {"ok": "green", "missing": "red", "low": "yellow"}


@click.command("doctor")
@click.argument("paths", nargs=-1, metavar="[PATH]…", type=click.Path(path_type=Path))
@config_option
@json_option
@click.option(
    "--fetch",
    "bundles",
    multiple=True,
    type=click.Choice([*get_args(Bundle), "all"]),
    help="Fetch Java archives first, so that later runs need no network.",
)
@click.option(
    "--archive",
    is_flag=True,
    help="Make archives of the classes that Java loads, so that Spark and the embedded broker "
    "start in half the time; some 20 s, once.",
)
def command(
    paths: tuple[Path, ...],
    config_path: Path | None,
    as_json: bool,
    bundles: tuple[str, ...],
    archive: bool,
) -> None:
    """Say what this machine has of what kaflow needs, and how to get the rest.

    PATHs are the files and folders of a project, this folder where it has a configuration: optional
    drivers that its pipelines need must be there.
    """
    known: tuple[Bundle, ...] = get_args(Bundle)
    for bundle in known:
        if bundle in bundles or "all" in bundles:
            fetch(bundle)
    if archive:
        make_spark_archive()
        make_broker_archive()
    wrong: ModelError | None = None
    try:
        specs = _pipelines(paths, config_path)
    except ModelError as error:  # what the machine lacks is said all the same
        specs, wrong = [], error
    checks = inspect_machine(needed_extras(specs))
    if as_json:
        print(json.dumps([asdict(check) for check in checks], indent=2))
    else:
        _show(checks)
    lacking = [check.name for check in checks if check.fatal]
    if not as_json and (lacking or wrong is None):
        print(f"lacking: {', '.join(lacking)}" if lacking else "ready to run pipelines")
    if wrong is not None:
        raise wrong
    if lacking:
        raise click.exceptions.Exit(1)


def _pipelines(paths: tuple[Path, ...], config_path: Path | None) -> list[PipelineSpec]:
    """Read pipelines as far as they can be read: `validate` is for what is wrong in them.

    Raises:
        ModelError: The configuration is wrong, or no pipeline of the paths can be read.
    """
    if not paths and config_path is None and find_config(Path()) is None:
        return []
    asked = bool(paths)
    paths, config_path = with_config(paths, config_path, (Path(),))
    files = read_project(paths, configuration(config_path))
    specs = [reading.spec for reading in files.readings if reading.spec is not None]
    if asked and not specs:
        raise_as_found(files.mistakes)
    return specs


def _show(checks: tuple[Check, ...]) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    for check in checks:
        colour = _COLOURS[check.state] if check.state != "missing" or check.required else "yellow"
        table.add_row(check.name, f"[{colour}]{check.state}[/]", escape(check.found))
        if check.cure:
            table.add_row("", "", f"[dim]{escape(check.cure)}[/]")
    Console().print(table)
