"""`kaflow preview`: the rows of a pipeline's nodes, as they come."""

import json
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import click
from rich.console import Console
from rich.text import Text

from kaflow_engine.cli.options import (
    PositiveType,
    config_option,
    configuration,
    json_option,
    set_option,
    with_config,
)
from kaflow_engine.cli.output import Clock, say_notices
from kaflow_engine.cli.stopping import stop_requests
from kaflow_engine.masking import without_secrets
from kaflow_engine.model.project import Project
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.project import load_checked
from kaflow_engine.preview.preview import Asked, preview
from kaflow_engine.preview.rows import Shown, ShownLetter, ShownRow

LETTERS = "dead letters"
_COLOURS: Mapping[str, str] = {"insert": "green", "upsert": "green", "update": "yellow"}


@click.command("preview")
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@click.argument("names", nargs=-1, metavar="[NAME]")
@click.option("--node", help="Only the rows of this relation or output.")
@click.option(
    "--seconds", type=PositiveType(), default=60.0, show_default=True, help="How long to look."
)
@click.option("--rows", type=click.IntRange(min=1), help="End after so many rows.")
@click.option(
    "--from",
    "since",
    type=click.Choice(["latest", "earliest"]),
    default="latest",
    show_default=True,
    help="Where events begin.",
)
@config_option
@set_option
@json_option
def command(
    path: Path,
    names: tuple[str, ...],
    node: str | None,
    seconds: float,
    rows: int | None,
    since: Literal["latest", "earliest"],
    config_path: Path | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Show the rows of each relation and output of the pipeline in FILE, as they come.

    It runs in this process, beside a run or without one, and leaves nothing behind: it opens no
    output, and keeps no position and no state. NAME says which pipeline where FILE has several.
    Lines are JSON, and for people on a terminal. Ctrl-C ends it.
    """
    (path, *others), config_path = with_config((path, *map(Path, names)), config_path)
    config = configuration(config_path, settings)
    project = load_checked([path], config)
    spec = _one(project, [str(other) for other in others])
    say_notices(project.notices)
    asked, clock, counts = (
        Asked(node=node, seconds=seconds, rows=rows, since=since),
        Clock(),
        Counter[str](),
    )
    show = _Drawn() if sys.stdout.isatty() and not as_json else _Lines()
    with stop_requests() as stop:
        for each in preview(spec, config, asked, stop, clock.say):
            show(each)
            counts[each.node.name if isinstance(each, ShownRow) else LETTERS] += 1
    clock.say(_summary(counts))


def _one(project: Project, names: list[str]) -> PipelineSpec:
    """Return the one pipeline that is meant.

    Raises:
        click.UsageError: There are none, or several of which not one is named.
    """
    known = [spec.name for spec in project.pipelines]
    if len(names) > 1:
        raise click.UsageError(f"name one pipeline, not {len(names)}: {', '.join(names)}")
    if names:
        return project.pipeline(names[0])
    if not known:
        raise click.UsageError("no pipeline stands in this file")
    if len(known) > 1:
        raise click.UsageError(f"name one of the pipelines: {', '.join(known)}")
    return project.pipelines[0]


def _summary(counts: Mapping[str, int]) -> str:
    rows = sum(counts.values()) - counts.get(LETTERS, 0)
    parts = [f"{name} {count}" for name, count in counts.items()]
    return f"{rows} row{'' if rows == 1 else 's'}{': ' if parts else ''}{', '.join(parts)}"


class _Lines:
    """Prints JSON, a line each, at once."""

    def __call__(self, each: Shown) -> None:
        sys.stdout.write(without_secrets(each.line()) + "\n")
        sys.stdout.flush()


class _Drawn:
    """Prints a line each, in columns as wide as what came so far."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)
        self._width = 0

    def __call__(self, each: Shown) -> None:
        if isinstance(each, ShownLetter):
            about = each.about
            place = f"{about['topic']}/{about['partition']}@{about['offset']}"
            cells = (LETTERS, about["phase"], f"{place}: {about['error']}: {about['message']}")
            colour = "red"
        else:
            key = json.dumps(each.key, ensure_ascii=False)
            cells = (each.node.name, each.operation, each.row or key)
            colour = _COLOURS.get(each.operation, "red")
        self._width = max(self._width, len(cells[0]))
        line = Text(cells[0].ljust(self._width), style="dim")
        line.append(f"  {cells[1]:<6}  ", style=colour).append(without_secrets(cells[2]))
        self._console.print(line, soft_wrap=True)
