"""`kaflow plan`: what would start, resume or be refused, and why."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import click

from kaflow_engine.cli.explain import connect_option, resolver
from kaflow_engine.cli.options import (
    config_option,
    configuration,
    json_option,
    paths_argument,
    set_option,
)
from kaflow_engine.cli.output import print_json, table_lines
from kaflow_engine.errors import StateError
from kaflow_engine.masking import without_secrets
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.project import load_checked
from kaflow_engine.plan.verdict import Verdict
from kaflow_engine.runtime.outlook import outlook_of


@click.command("plan")
@paths_argument
@connect_option
@config_option
@set_option
@json_option
def command(
    paths: tuple[Path, ...],
    connect: bool,
    config_path: Path | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Show what a run of pipelines would do with their state; nothing is changed."""
    config = configuration(config_path, settings)
    project = load_checked(paths, config)
    resolve = resolver() if connect else None
    found = [(spec, outlook_of(spec, config, resolve)) for spec in project.pipelines]
    if as_json:
        print_json([{"name": spec.name, **asdict(verdict)} for spec, verdict in found])
    else:
        _show(found)
    if any(verdict.outlook == "refused" for _, verdict in found):
        raise click.exceptions.Exit(StateError.exit_code)


def _show(found: Sequence[tuple[PipelineSpec, Verdict]]) -> None:
    rows = [(verdict.outlook, spec.name, _where(verdict)) for spec, verdict in found]
    for line, (_, verdict) in zip(table_lines(rows), found, strict=True):
        click.echo(line)
        for reason in verdict.reasons:
            click.echo("\n".join(f"    {part}" for part in without_secrets(reason).splitlines()))
    counts = {name: 0 for name in ("new", "resume", "refused", "running")}
    for _, verdict in found:
        counts[verdict.outlook] += 1
    click.echo(", ".join(f"{count} {name}" for name, count in counts.items() if count))


def _where(verdict: Verdict) -> str:
    batch = "" if verdict.batch is None else f"batch {verdict.batch}"
    if verdict.watermark is None:
        return batch
    try:
        moment = datetime.fromtimestamp(verdict.watermark / 1000, UTC)
        mark = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        mark = "the end of the input"
    return ", ".join(part for part in (batch, f"watermark {mark}") if part)
