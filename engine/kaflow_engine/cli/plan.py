"""`kaflow plan`: what would start, resume or be refused, and why."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
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
from kaflow_engine.errors import ModelError, StateError
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.operators.params import Plan
from kaflow_engine.plan.build import build_plan, check_pipeline, declared_columns
from kaflow_engine.plan.explain import Columns, Resolver
from kaflow_engine.plan.project import load_checked
from kaflow_engine.plan.verdict import StoredState, Verdict, judge, read_state, stored_plan
from kaflow_engine.runtime.plans import plan_text
from kaflow_engine.sql.read import topics_of

STALE = "the state holds the columns that were used so far; --connect looks for others"


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
    found = [(spec, _verdict(spec, config, resolve)) for spec in project.pipelines]
    if as_json:
        print_json([{"name": spec.name, **asdict(verdict)} for spec, verdict in found])
    else:
        _show(found)
    if any(verdict.outlook == "refused" for _, verdict in found):
        raise click.exceptions.Exit(StateError.exit_code)


def _verdict(spec: PipelineSpec, config: Config, resolve: Resolver | None) -> Verdict:
    stored = read_state(Path(config.state.rocksdb.path) / spec.id)
    names = topics_of(spec.query, spec.place("query"))
    declared = {name: declared_columns(spec, name) for name in names}
    missing = [name for name, columns in declared.items() if columns is None]
    # What was found when the state was created is used again at every start.
    known = stored.columns
    unknown = [name for name in missing if name not in known]
    if unknown and resolve is not None:
        known |= resolve(spec, config, unknown)
    schemas = {name: columns or known.get(name) for name, columns in declared.items()}
    complete = {name: columns for name, columns in schemas.items() if columns is not None}
    if len(complete) < len(names):
        notices = tuple(notice.message for notice in check_pipeline(spec, config))
        return _without_columns(stored, notices)
    pinned = [name for name in missing if name not in unknown]
    try:
        plan = _plan(spec, config, complete)
    except ModelError as error:
        # The state holds the columns that were used, and the query may now want others.
        if not pinned:
            raise
        if resolve is None:
            reasons = (str(error), STALE)
            return Verdict(outlook="refused", reasons=reasons, watermark=stored.watermark)
        plan = _plan(spec, config, complete | _widened(known, resolve(spec, config, pinned)))
    if stored.state is not None:
        plan = replace(plan, partitions=stored.state.partitions)
    try:
        old = None if stored.damage else stored_plan(stored)
    except StateError as error:
        return Verdict(outlook="refused", reasons=(str(error),))
    return judge(stored, old, json.loads(plan_text(plan)))


def _plan(spec: PipelineSpec, config: Config, schemas: Columns) -> Plan:
    return build_plan(spec, config, schemas).plan


def _widened(pinned: Columns, found: Columns) -> dict[str, tuple[Column, ...]]:
    names = {topic: {column.name for column in columns} for topic, columns in pinned.items()}
    return {
        topic: (*pinned[topic], *(c for c in columns if c.name not in names[topic]))
        for topic, columns in found.items()
    }


def _without_columns(stored: StoredState, notices: tuple[str, ...]) -> Verdict:
    if stored.holder is not None or stored.damage is not None:
        return judge(stored, None, {})
    if stored.state is None:
        return Verdict(outlook="new", reasons=("there is no state yet", *notices), batch=1)
    return Verdict(outlook="refused", reasons=("a topic was added", *notices))


def _show(found: Sequence[tuple[PipelineSpec, Verdict]]) -> None:
    rows = [(verdict.outlook, spec.name, _where(verdict)) for spec, verdict in found]
    for line, (_, verdict) in zip(table_lines(rows), found, strict=True):
        click.echo(line)
        for reason in verdict.reasons:
            click.echo("\n".join(f"    {part}" for part in reason.splitlines()))
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
