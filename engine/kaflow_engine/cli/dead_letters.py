"""`kaflow dead-letters`: look at the records that were taken out, and try them again."""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from kaflow_engine.cli.options import (
    config_option,
    configuration,
    json_option,
    set_option,
    with_config,
)
from kaflow_engine.cli.output import Clock, print_json, print_table
from kaflow_engine.connectors.letters import Letter, chosen, text_of
from kaflow_engine.errors import ModelError
from kaflow_engine.model.config import Config
from kaflow_engine.model.configuration.with_brought import with_brought
from kaflow_engine.model.letters import COLUMNS
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.project import load_one
from kaflow_engine.runtime.dead_letters.redrive import (
    find_letters,
    redrivable,
    redrive,
    ways_of,
)

F = TypeVar("F", bound=Callable[..., Any])

where_option = click.option(
    "--where",
    metavar="SQL",
    help=f"Only those for which this holds: SQL over {', '.join(COLUMNS)}.",
)


def _pipeline(command: F) -> F:
    """Add what names a pipeline and its configuration."""
    for option in (
        set_option,
        config_option,
        click.argument("paths", nargs=-1, metavar="[PATH]…", type=click.Path(path_type=Path)),
        click.argument("name"),
    ):
        command = option(command)
    return command


@click.group("dead-letters")
def command() -> None:
    """Look at the records that a pipeline has taken out, and try them again."""


@command.command("list")
@_pipeline
@where_option
@click.option(
    "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="The newest so many."
)
@json_option
def list_letters(
    name: str,
    paths: tuple[Path, ...],
    config_path: Path | None,
    settings: tuple[str, ...],
    where: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """List the newest dead letters of the pipeline NAME."""
    _, _, letters = _found(name, paths, config_path, settings)
    found = chosen(letters, where)
    shown = found[-limit:]
    if as_json:
        print_json([letter.data() for letter in shown])
        return
    if shown:
        by_chain = any(letter.chain for letter in shown)
        chain = ("chain",) if by_chain else ()
        head = ("letter", "record", "time", *chain, "phase", "error", "try", "message")
        print_table([head, *(_row(letter, by_chain) for letter in shown)])
    click.echo(f"{len(shown)} of {len(found)} dead letters of {name}", err=True)


@command.command("show")
@_pipeline
@click.option("--letter", required=True, help="Which one, as `list` names it: 0:17.")
@json_option
def show(
    name: str,
    paths: tuple[Path, ...],
    config_path: Path | None,
    settings: tuple[str, ...],
    letter: str,
    as_json: bool,
) -> None:
    """Show one dead letter of the pipeline NAME, with all its bytes."""
    _, spec, letters = _found(name, paths, config_path, settings)
    for each in letters:
        if each.letter == letter:
            data = each.data() | {"headers": {k: text_of(v) for k, v in each.headers}}
            if as_json:
                print_json(data)
            else:
                print_table([(key, _text(value)) for key, value in data.items()])
            return
    raise ModelError(
        f"'{name}' has no dead letter {letter}", spec.at, "`kaflow dead-letters list` names them"
    )


@command.command("stats")
@_pipeline
@where_option
@json_option
def stats(
    name: str,
    paths: tuple[Path, ...],
    config_path: Path | None,
    settings: tuple[str, ...],
    where: str | None,
    as_json: bool,
) -> None:
    """Count the dead letters of the pipeline NAME by reason."""
    _, _, letters = _found(name, paths, config_path, settings)
    found = chosen(letters, where)
    counts = Counter((each.topic, each.phase, each.error) for each in found)
    again = Counter((each.topic, each.phase, each.error) for each in found if each.redriven)
    rows = [(*why, count, again[why]) for why, count in counts.most_common()]
    if as_json:
        names = ("topic", "phase", "error", "letters", "redriven")
        print_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    if rows:
        head = ("topic", "phase", "error", "letters", "redriven")
        print_table([head, *(tuple(map(str, row)) for row in rows)])
    click.echo(f"{len(found)} dead letters of {name}", err=True)


@command.command("redrive")
@_pipeline
@where_option
@click.option("--dry-run", is_flag=True, help="Only say what would be sent.")
@json_option
def redrive_letters(
    name: str,
    paths: tuple[Path, ...],
    config_path: Path | None,
    settings: tuple[str, ...],
    where: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Put dead letters of the pipeline NAME through it again, each once.

    Their records are sent to their topics as if they came now, with the header `kaflow.redrive`;
    other pipelines do not see them, nor do chains of this one that a letter is not about. Those of
    a journal are put into it by the process that runs the pipeline, or at its next start. What
    fails again is a new dead letter.
    """
    config, spec, letters = _found(name, paths, config_path, settings)
    ways = ways_of(spec, config)
    if not ways.topics and not ways.journals:
        raise ModelError(
            f"'{name}' reads no topics or journals to which records could be sent again",
            spec.at,
            "`kaflow dead-letters show` prints a record; send it to its source again",
        )
    if dry_run:
        sent = redrivable(spec, config, chosen(letters, where))
    else:
        clock = Clock()
        sent = redrive(spec, config, where, lambda done, of: clock.say(f"sent {done} of {of}"))
    if as_json:
        print_json({"redriven": 0 if dry_run else len(sent), "letters": [x.letter for x in sent]})
        return
    topics = Counter(letter.topic for letter in sent)
    for topic, count in sorted(topics.items()):
        click.echo(f"{topic}: {count}")
    click.echo(f"{'would send' if dry_run else 'sent'} {len(sent)} records again")


def _found(
    name: str, paths: tuple[Path, ...], config_path: Path | None, settings: tuple[str, ...]
) -> tuple[Config, PipelineSpec, list[Letter]]:
    paths, config_path = with_config(paths, config_path, (Path(),))
    config = configuration(config_path, settings)
    spec = load_one(paths, name, config)
    config = with_brought(config, [spec])
    return config, spec, find_letters(spec, config)


def _row(letter: Letter, by_chain: bool) -> tuple[str, ...]:
    return (
        letter.letter,
        f"{letter.topic}[{letter.partition}]@{letter.offset}",
        _time(letter.timestamp),
        *((_text(letter.chain),) if by_chain else ()),
        letter.phase,
        letter.error,
        f"{letter.attempt}{' redriven' if letter.redriven else ''}",
        letter.message.partition("\n")[0],
    )


def _time(milliseconds: int | None) -> str:
    if milliseconds is None:
        return "-"
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d %H:%M:%S}"


def _text(value: object) -> str:
    return "-" if value is None else str(value)
