"""`kaflow validate`: every mistake of every pipeline file, without a JVM or a broker."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kaflow_engine.cli.options import (
    allow_option,
    allowances,
    config_option,
    configuration,
    files_argument,
    files_named,
    json_option,
    set_option,
    with_config,
)
from kaflow_engine.cli.output import print_json, print_table, say_notices
from kaflow_engine.errors import KaflowError, ModelError
from kaflow_engine.model.config import Config
from kaflow_engine.model.configuration.with_brought import with_brought
from kaflow_engine.plan.planner.project import CheckedPipeline, CheckedProject, check_project
from kaflow_engine.serving.checks import mistakes_of, serve_files

if TYPE_CHECKING:
    from kaflow_engine.connectors.kafka.output.alignment import Findings  # it imports a client

LEFT = ("topics", "columns", "permissions", "output topics")
"""What only brokers and registry can tell."""


@click.command("validate")
@files_argument
@click.option(
    "--connect",
    is_flag=True,
    help="Ask brokers and registry, too: topics, columns, permissions, and whether outputs fit the "
    "topics that exist. Nothing is changed.",
)
@config_option
@set_option
@allow_option
@json_option
def command(
    paths: tuple[Path, ...],
    connect: bool,
    config_path: Path | None,
    settings: tuple[str, ...],
    allowed: tuple[str, ...],
    as_json: bool,
) -> None:
    """Check files of pipelines and of what is served, and all those in folders."""
    paths, config_path = with_config(files_named(paths), config_path)
    config = configuration(config_path, (*settings, *allowances(allowed)))
    served = serve_files(paths)
    pipelines = [path for path in paths if path not in served]
    project = check_project(pipelines, config) if pipelines else CheckedProject()
    wrong = tuple(mistake for path in served for mistake in mistakes_of(path, config))
    project = replace(project, others=(*project.others, *wrong))
    outside: Mapping[str, Findings] = {}
    if connect:
        outside = connected(project, config)
    if as_json:
        print_json(_data(project, outside, connect))
    else:
        _show(project, outside, connect)
        for path in served:
            click.echo(f"what is served: {path}")
    if project.mistakes:
        raise click.exceptions.Exit(ModelError.exit_code)
    mistakes = [mistake for found in outside.values() for mistake in found.mistakes]
    if mistakes:
        raise click.exceptions.Exit(mistakes[0].exit_code)


def connected(
    project: CheckedProject, config: Config, only: str | None = None
) -> "Mapping[str, Findings]":
    """Return, by pipeline, what brokers and registry say of those whose files are right.

    Args:
        project: As it was checked.
        config: Where brokers and registry are.
        only: The pipeline that is asked about; None: all.

    Raises:
        SourceError: No broker answers.
    """
    from kaflow_engine.runtime.planning.connect import check_connected  # imports a client

    right = [each.spec for each in project.pipelines if each.spec and not each.mistakes]
    wanted = [spec for spec in right if only in (None, spec.name)]
    return check_connected(wanted, with_brought(config, wanted), right)


def _show(project: CheckedProject, outside: "Mapping[str, Findings]", connect: bool) -> None:
    for mistake in _mistakes(project, outside):
        click.echo(f"error: {mistake}", err=True)
    say_notices(_notices(project, outside))
    if project.pipelines:
        print_table(
            [
                ("ok" if _is_right(each, outside) else "wrong", each.name or "?", str(each.at))
                for each in project.pipelines
            ]
        )
    click.echo(_summary(project, outside))
    if not connect and project.pipelines and not project.mistakes:
        click.echo(f"left to --connect: {', '.join(LEFT)}")


def _is_right(pipeline: CheckedPipeline, outside: "Mapping[str, Findings]") -> bool:
    found = outside.get(pipeline.name or "")
    return not pipeline.mistakes and not (found and found.mistakes)


def _mistakes(project: CheckedProject, outside: "Mapping[str, Findings]") -> list[KaflowError]:
    return [*project.mistakes, *(each for found in outside.values() for each in found.mistakes)]


def _notices(project: CheckedProject, outside: "Mapping[str, Findings]") -> list[KaflowError]:
    of_pipelines = [
        notice
        for each in project.pipelines
        for notice in each.notices
        if (each.name or "") not in outside  # its columns were looked for
    ]
    found = [notice for each in outside.values() for notice in each.notices]
    return [*of_pipelines, *project.notices, *found]


def _summary(project: CheckedProject, outside: "Mapping[str, Findings]") -> str:
    notices = len(_notices(project, outside))
    parts = [
        _count(len(project.pipelines), "pipeline"),
        _count(len(_mistakes(project, outside)), "mistake"),
        *([_count(notices, "notice")] if notices else []),
    ]
    return ", ".join(parts)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _data(project: CheckedProject, outside: "Mapping[str, Findings]", connect: bool) -> object:
    found = [notice for each in outside.values() for notice in each.notices]
    mistakes = _mistakes(project, outside)
    return {
        "success": True,
        "is_valid": not mistakes,
        "errors": [str(mistake) for mistake in mistakes],
        "warnings": [str(notice) for notice in _notices(project, outside)],
        "pipelines": [
            {
                "name": each.name,
                "file": each.at.file,
                "ok": _is_right(each, outside),
                "notices": [_error(notice) for notice in each.notices if each.name not in outside],
            }
            for each in project.pipelines
        ],
        "mistakes": [_error(mistake) for mistake in mistakes],
        "notices": [_error(notice) for notice in (*project.notices, *found)],
        "left": [] if connect else list(LEFT),
    }


def _error(error: KaflowError) -> dict[str, object]:
    at = error.at
    return {
        "message": error.message,
        "file": at.file if at else None,
        "line": at.line if at else None,
        "column": at.column if at and at.column else None,
        "hint": error.hint,
    }
