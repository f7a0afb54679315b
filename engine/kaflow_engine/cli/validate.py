"""`kaflow validate`: every mistake of every pipeline file, without a JVM or a broker."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from kaflow_engine.cli.options import (
    config_option,
    configuration,
    json_option,
    paths_argument,
    set_option,
)
from kaflow_engine.cli.output import print_json, print_table
from kaflow_engine.errors import KaflowError, ModelError, Problems
from kaflow_engine.model.config import Config
from kaflow_engine.model.project import read_project
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.build import check_pipeline


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A pipeline that could be read, and what was found about it."""

    spec: PipelineSpec
    mistakes: tuple[ModelError, ...] = ()
    notices: tuple[ModelError, ...] = ()

    @property
    def verdict(self) -> str:
        """How it is summed up."""
        return "wrong" if self.mistakes else "ok"


@click.command("validate")
@paths_argument
@config_option
@set_option
@json_option
def command(
    paths: tuple[Path, ...], config_path: Path | None, settings: tuple[str, ...], as_json: bool
) -> None:
    """Check pipeline files, and all those in folders."""
    config = configuration(config_path, settings)
    specs, mistakes = read_project(paths, config)
    wrong = {mistake.at.file for mistake in mistakes if mistake.at}
    checked = [_check(spec, config) for spec in specs if spec.at.file not in wrong]
    mistakes = [*mistakes, *(mistake for each in checked for mistake in each.mistakes)]
    if as_json:
        print_json(_data(checked, mistakes))
    else:
        _show(checked, mistakes)
    if mistakes:
        raise click.exceptions.Exit(ModelError.exit_code)


def _check(spec: PipelineSpec, config: Config) -> Checked:
    try:
        return Checked(spec=spec, notices=check_pipeline(spec, config))
    except ModelError as error:
        parts = error.errors if isinstance(error, Problems) else (error,)
        return Checked(spec=spec, mistakes=parts)


def _show(checked: Sequence[Checked], mistakes: Sequence[ModelError]) -> None:
    for mistake in mistakes:
        click.echo(f"error: {mistake}", err=True)
    for each in checked:
        for notice in each.notices:
            click.echo(f"notice: {notice}", err=True)
    if checked:
        print_table([(each.verdict, each.spec.name, str(each.spec.at)) for each in checked])
    click.echo(_summary(checked, mistakes))


def _summary(checked: Sequence[Checked], mistakes: Sequence[ModelError]) -> str:
    notices = sum(len(each.notices) for each in checked)
    parts = [
        _count(len(checked), "pipeline"),
        _count(len(mistakes), "mistake"),
        *([_count(notices, "notice")] if notices else []),
    ]
    return ", ".join(parts)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _data(checked: Sequence[Checked], mistakes: Sequence[ModelError]) -> object:
    return {
        "pipelines": [
            {
                "name": each.spec.name,
                "file": each.spec.at.file,
                "ok": not each.mistakes,
                "notices": [_error(notice) for notice in each.notices],
            }
            for each in checked
        ],
        "mistakes": [_error(mistake) for mistake in mistakes],
    }


def _error(error: KaflowError) -> dict[str, object]:
    at = error.at
    return {
        "message": error.message,
        "file": at.file if at else None,
        "line": at.line if at else None,
        "hint": error.hint,
    }
