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
    (spec, *others) = load_checked([pipeline], config).pipelines
    if others:
        raise ModelError("several pipelines stand here", Location(str(pipeline)), "name one file")
    found = invoke(spec, with_brought(config, [spec]), _lines(messages), int(time.time() * 1000))
    for row in found.rows:
        click.echo(row)
    for letter in found.letters:
        line = f"line {letter.offset + 1}: " if letter.offset >= 0 else ""
        click.echo(without_secrets(f"refused: {line}{letter.phase}: {letter.error}"), err=True)


def _lines(path: Path) -> list[bytes]:
    """Return the messages of a file.

    Raises:
        ModelError: It cannot be read.
    """
    try:
        return [line for line in path.read_bytes().splitlines() if line.strip()]
    except OSError as error:
        reason = (error.strerror or "it fails").lower()
        raise ModelError(f"the messages cannot be read: {reason}", Location(str(path))) from error
