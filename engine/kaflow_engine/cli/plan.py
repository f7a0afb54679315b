"""`kaflow plan`: what the files would change of what runs, and what needs a decision."""

import getpass
import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import click

from kaflow_engine.cli.explain import connect_option, resolver
from kaflow_engine.cli.options import (
    config_option,
    configuration,
    json_option,
    paths_argument,
    set_option,
    with_config,
)
from kaflow_engine.cli.output import Clock, print_json, say_notices, table_lines
from kaflow_engine.errors import StateError
from kaflow_engine.model.config import Config
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.evolution.diff import WAY_OUT
from kaflow_engine.plan.evolution.start_decision import Status
from kaflow_engine.plan.explain.explain import Columns, Resolver
from kaflow_engine.plan.planner.project import load_checked
from kaflow_engine.runtime.planning.approve import EVERY, approve, chosen
from kaflow_engine.runtime.planning.preview import Outlook, outlooks
from kaflow_engine.state.log.approval import Begin

NEEDS_DECISION = 1
WORDS: dict[Status, str] = {
    "unchanged": "unchanged",
    "kept": "restart, state kept",
    "migrated": "restart, state migrated",
    "rebuild": "needs a rebuild",
    "new": "new",
    "removed": "removed",
    "unclear": "cannot tell",
    "damaged": "damaged",
}
BEGINS: dict[Begin, str] = {
    "continue": "dimensions are loaded again, events go on where they are",
    "earliest": "all is read again from the first record there is; rows are written again",
    "latest": "dimensions are loaded again, events begin with the next record",
}


@click.command("plan")
@paths_argument
@connect_option
@click.option(
    "--approve",
    "names",
    multiple=True,
    metavar="NAME",
    help=f"Let the state of this pipeline be rebuilt at its next start; '{EVERY}': of each that "
    "needs it; may be repeated.",
)
@click.option(
    "--from",
    "begin",
    type=click.Choice(list(BEGINS)),
    default="continue",
    show_default=True,
    help="Where events begin after an approved rebuild; dimensions are loaded again in any case.",
)
@config_option
@set_option
@json_option
def command(
    paths: tuple[Path, ...],
    connect: bool,
    names: tuple[str, ...],
    begin: str,
    config_path: Path | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Compare the files with what runs: what a start would keep, migrate, or have to rebuild.

    Nothing is changed, but for a decision that --approve writes down. The exit code is 1 if a
    decision is needed, and 14 if a state is damaged.
    """
    paths, config_path = with_config(paths, config_path)
    config = configuration(config_path, settings)
    project = load_checked(paths, config)
    say_notices(project.notices)
    resolve = _telling(resolver()) if connect else None
    whole = all(path.is_dir() for path in paths)
    found = outlooks(project.pipelines, config, resolve, whole=whole)
    if names:
        found = _approve(found, names, cast(Begin, begin))
    if as_json:
        print_json([_data(each) for each in found])
    else:
        files = " ".join(shlex.quote(str(path)) for path in paths)
        chosen_config = f" --config {shlex.quote(str(config_path))}" if config_path else ""
        _show(found, f"kaflow plan {files}{chosen_config}")
    statuses = {each.verdict.status for each in found}
    if "damaged" in statuses:
        raise click.exceptions.Exit(StateError.exit_code)
    if not all(each.verdict.decided for each in found):
        raise click.exceptions.Exit(NEEDS_DECISION)


def _telling(resolve: Resolver) -> Resolver:
    """Say which topics are asked for, because that may take seconds."""
    clock = Clock()

    def announced(spec: PipelineSpec, config: Config, topics: Sequence[str]) -> Columns:
        clock.say(f"{spec.name}: looking for the columns of {', '.join(topics)}")
        return resolve(spec, config, topics)

    return announced


def _approve(found: Sequence[Outlook], names: Sequence[str], begin: Begin) -> tuple[Outlook, ...]:
    now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    wanted = chosen(found, names)
    for each in wanted:
        approve(each, begin, _who(), now)
    return tuple(
        replace(each, verdict=replace(each.verdict, approved=begin, batch=1))
        if each in wanted
        else each
        for each in found
    )


def _who() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run as a number without a name
        return f"user {os.getuid()}"


def _data(found: Outlook) -> dict[str, object]:
    return {
        "name": found.name,
        "id": found.id,
        **asdict(found.verdict),
        "touched": [asdict(each) for each in found.touched],
    }


def _show(found: Sequence[Outlook], command: str) -> None:
    rows = [(WORDS[each.verdict.status], each.name, _where(each)) for each in found]
    for line, each in zip(table_lines(rows) if rows else (), found, strict=True):
        click.echo(line)
        for reason in _reasons(each, command):
            click.echo("\n".join(f"    {part}" for part in reason.splitlines()))
    counts = {word: 0 for word in WORDS.values()}
    for each in found:
        counts[WORDS[each.verdict.status]] += 1
    click.echo(", ".join(f"{count} {word}" for word, count in counts.items() if count))


def _reasons(found: Outlook, command: str) -> Iterator[str]:
    verdict = found.verdict
    yield from verdict.reasons
    for each in found.touched:
        for text in each.breaking:
            yield f"breaks '{each.pipeline}', which reads '{each.topic}': {text}"
        for text in each.others:
            yield f"touches '{each.pipeline}', which reads '{each.topic}': {text}"
    if verdict.status != "rebuild":
        return
    if verdict.approved is not None:
        yield f"approved, --from {verdict.approved}: {BEGINS[verdict.approved]}"
        yield "rows that wait, and records kept for matches, stay behind in the old state"
        return
    yield f"{WAY_OUT}, or let it be rebuilt: {command} --approve {found.name}"


def _where(found: Outlook) -> str:
    verdict = found.verdict
    batch = "" if verdict.batch is None else f"batch {verdict.batch}"
    parts = [batch, _mark(verdict.watermark), verdict.running or ""]
    return ", ".join(part for part in parts if part)


def _mark(watermark: int | None) -> str:
    if watermark is None:
        return ""
    try:
        moment = datetime.fromtimestamp(watermark / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return "watermark the end of the input"
    return f"watermark {moment.isoformat(timespec='milliseconds').replace('+00:00', 'Z')}"
