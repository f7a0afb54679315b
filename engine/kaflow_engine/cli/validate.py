"""`kaflow validate`: every mistake of every pipeline file, without a JVM or a broker."""

from pathlib import Path

import click

from kaflow_engine.cli.options import (
    config_option,
    configuration,
    json_option,
    paths_argument,
    set_option,
    with_config,
)
from kaflow_engine.cli.output import print_json, print_table, say_notices
from kaflow_engine.errors import KaflowError, ModelError
from kaflow_engine.plan.planner.project import CheckedProject, check_project


@click.command("validate")
@paths_argument
@config_option
@set_option
@json_option
def command(
    paths: tuple[Path, ...], config_path: Path | None, settings: tuple[str, ...], as_json: bool
) -> None:
    """Check pipeline files, and all those in folders."""
    paths, config_path = with_config(paths, config_path)
    config = configuration(config_path, settings)
    project = check_project(paths, config)
    if as_json:
        print_json(_data(project))
    else:
        _show(project)
    if project.mistakes:
        raise click.exceptions.Exit(ModelError.exit_code)


def _show(project: CheckedProject) -> None:
    for mistake in project.mistakes:
        click.echo(f"error: {mistake}", err=True)
    say_notices(_notices(project))
    if project.pipelines:
        print_table(
            [
                ("wrong" if each.mistakes else "ok", each.name or "?", str(each.at))
                for each in project.pipelines
            ]
        )
    click.echo(_summary(project))


def _notices(project: CheckedProject) -> list[ModelError]:
    return [*(notice for each in project.pipelines for notice in each.notices), *project.notices]


def _summary(project: CheckedProject) -> str:
    notices = len(_notices(project))
    parts = [
        _count(len(project.pipelines), "pipeline"),
        _count(len(project.mistakes), "mistake"),
        *([_count(notices, "notice")] if notices else []),
    ]
    return ", ".join(parts)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _data(project: CheckedProject) -> object:
    return {
        "pipelines": [
            {
                "name": each.name,
                "file": each.at.file,
                "ok": not each.mistakes,
                "notices": [_error(notice) for notice in each.notices],
            }
            for each in project.pipelines
        ],
        "mistakes": [_error(mistake) for mistake in project.mistakes],
        "notices": [_error(notice) for notice in project.notices],
    }


def _error(error: KaflowError) -> dict[str, object]:
    at = error.at
    return {
        "message": error.message,
        "file": at.file if at else None,
        "line": at.line if at else None,
        "hint": error.hint,
    }
