"""`kaflow dev invoke`: messages of a file through a pipeline, without Kafka."""

import time
from pathlib import Path

import click

from kaflow_engine.cli.options import (
    allow_option,
    allowances,
    config_option,
    configuration,
    set_option,
)
from kaflow_engine.errors import Location, ModelError
from kaflow_engine.masking import without_secrets
from kaflow_engine.model.configuration.with_brought import with_brought
from kaflow_engine.plan.planner.project import load_checked
from kaflow_engine.testing.local.invoke import invoke


@click.command("invoke")
@click.argument("pipeline", type=click.Path(path_type=Path))
@click.argument("messages", type=click.Path(path_type=Path))
@config_option
@set_option
@allow_option
def command(
    pipeline: Path,
    messages: Path,
    config_path: Path | None,
    settings: tuple[str, ...],
    allowed: tuple[str, ...],
) -> None:
    """Send the lines of MESSAGES, each a JSON object, through PIPELINE as one batch.

    Prints what it makes of them, a JSON object a line, and writes nothing anywhere. Messages that
    it refuses are named beside.
    """
    config = configuration(config_path, (*settings, *allowances(allowed)))
    pipelines = load_checked([pipeline], config).pipelines
    if len(pipelines) != 1:
        number = "several pipelines stand" if pipelines else "no pipeline stands"
        hint = "name the file of one pipeline"
        raise ModelError(f"{number} here", Location(str(pipeline)), hint)
    (spec,), lines = pipelines, _lines(messages)
    config = with_brought(config, [spec])
    found = invoke(spec, config, [*lines.values()], int(time.time() * 1000))
    for row in found.rows:
        click.echo(row)
    numbers = [*lines]
    for letter in found.letters:
        line = f"line {numbers[letter.offset]}: " if letter.offset >= 0 else ""
        click.echo(without_secrets(f"refused: {line}{letter.phase}: {letter.error}"), err=True)


def _lines(path: Path) -> dict[int, bytes]:
    """Return the messages of a file by the numbers of their lines; empty lines are none.

    Raises:
        ModelError: It cannot be read.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        reason = (error.strerror or "it fails").lower()
        raise ModelError(f"the messages cannot be read: {reason}", Location(str(path))) from error
    return {number: line for number, line in enumerate(lines, start=1) if line.strip()}
