"""`kaflow state ls | size | verify`: which states there are, how big, and whether all is sound."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import click

from kaflow_engine.cli.options import config_option, configuration, json_option, set_option
from kaflow_engine.cli.output import Steps, print_json, print_table
from kaflow_engine.errors import KaflowError, StateError
from kaflow_engine.runtime.batch.snapshots import state_partitions
from kaflow_engine.runtime.maintenance.catalog import (
    FoundState,
    bytes_in,
    find_state,
    find_states,
    log_of,
    readable,
    snapshots_of,
    state_root,
)
from kaflow_engine.runtime.maintenance.exclusive import held
from kaflow_engine.runtime.maintenance.sizes import SideSize, sizes
from kaflow_engine.runtime.maintenance.view import open_view
from kaflow_engine.runtime.planning.plan_codec import plan_of
from kaflow_engine.state.checkpoints.verify import Verified, verify
from kaflow_engine.state.storage.copy_location import COPIES

F = TypeVar("F", bound=Callable[..., Any])


def configured(command: F) -> F:
    """Add the options that say where states are."""
    return set_option(config_option(command))


@click.command("ls")
@configured
@json_option
def list_states(config_path: Path | None, settings: tuple[str, ...], as_json: bool) -> None:
    """List the states of this machine."""
    root = state_root(configuration(config_path, settings))
    found = [_about(each) for each in find_states(root)]
    if as_json:
        print_json(found)
        return
    if found:
        names = ("pipeline", "state", "gen", "parts", "batch", "when", "size", "plan", "is")
        rows = [
            (
                each["pipeline"],
                each["state_id"] or "-",
                _text(each["generation"]),
                _text(each["partitions"]),
                _text(each["batch"]),
                each["batch_time"] or "-",
                size_text(each["bytes"]),
                each["plan"] or "-",
                _condition(each),
            )
            for each in found
        ]
        print_table([names, *rows])
    click.echo(f"{len(found)} states in {root}", err=True)


@click.command("size")
@click.argument("pipeline")
@configured
@json_option
def show_size(
    pipeline: str, config_path: Path | None, settings: tuple[str, ...], as_json: bool
) -> None:
    """Count entries and bytes of a state by operator, side and partition."""
    config = configuration(config_path, settings)
    found = readable(find_state(state_root(config), pipeline))
    log, steps = log_of(found), Steps()
    with open_view(log, snapshots_of(found), say=steps.say, parts=()) as view:
        counted = list(sizes(view))
    if as_json:
        print_json([each.data() for each in counted])
        return
    if counted:
        head = ("operator", "side", "entries", "bytes", "partition: entries")
        print_table([head, *map(_size_row, counted)])
    total = sum(each.bytes for each in counted)
    entries = sum(each.entries for each in counted)
    click.echo(f"{entries} entries, {size_text(total)} in {found.name}", err=True)


@click.command("verify")
@click.argument("pipeline")
@configured
@json_option
def verify_state(
    pipeline: str, config_path: Path | None, settings: tuple[str, ...], as_json: bool
) -> None:
    """Check every checksum of a state, and that its snapshots and change files agree.

    Copies that runs use are checked too, unless the pipeline runs.
    """
    config = configuration(config_path, settings)
    found = find_state(state_root(config), pipeline)
    steps = Steps()
    if found.stored.holder is None and found.stored.damage is None:
        with held(found, "verified"):
            done = _verify(found, steps, found.directory / COPIES)
    else:
        done = _verify(found, steps, None)
    if as_json:
        print_json(_verified_data(done))
    else:
        _show_verified(found, done)
    if not done.sound:
        raise click.exceptions.Exit(StateError.exit_code)


COMMANDS = (list_states, show_size, verify_state)


def size_text(size: int) -> str:
    """Return a number of bytes for people.

    >>> size_text(999), size_text(1_234_567)
    ('999 B', '1.2 MB')
    """
    number, units = float(size), ["B", "kB", "MB", "GB", "TB"]
    while number >= 1000 and len(units) > 1:
        number /= 1000
        units.pop(0)
    return f"{number:.0f} B" if units[0] == "B" else f"{number:.1f} {units[0]}"


def time_text(milliseconds: int | None) -> str | None:
    """Return an instant in UTC; None where there is none that a calendar knows."""
    if milliseconds is None:
        return None
    try:
        moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _about(found: FoundState) -> dict[str, Any]:
    stored = found.stored
    state = stored.state
    when = None
    if state is not None and stored.committed:
        try:
            when = log_of(found).load_batch(stored.committed).batch_time
        except KaflowError:
            when = None
    return {
        "pipeline": found.name,
        "id": found.id,
        "state_id": state.state_id if state else None,
        "generation": state.generation if state else None,
        "partitions": state.partitions if state else None,
        "batch": stored.committed,
        "batch_time": time_text(when),
        "age_seconds": None if when is None else round(time.time() - when / 1000, 1),
        "bytes": bytes_in(found.directory),
        "plan": state.fingerprint if state else None,
        "open_batch": stored.opened,
        "running": stored.holder,
        "damage": stored.damage,
        "directory": str(found.directory),
    }


def _condition(about: dict[str, Any]) -> str:
    if about["damage"] is not None:
        return f"damaged: {about['damage'].partition(chr(10))[0]}"
    if about["running"] is not None:
        return f"running: {about['running'].removesuffix(' runs it')}"
    if about["open_batch"] is not None:
        return f"stopped, batch {about['open_batch']} is open"
    return "stopped"


def _size_row(size: SideSize) -> tuple[str, ...]:
    parts = "  ".join(f"{part}: {entries}" for part, (entries, _) in sorted(size.parts.items()))
    return size.operator, size.side, str(size.entries), size_text(size.bytes), parts


def _verify(found: FoundState, steps: Steps, copies: Path | None) -> Verified:
    store, snapshots = log_of(found).store, snapshots_of(found)
    with TemporaryDirectory(prefix="kaflow-state-") as folder:
        return verify(store, snapshots, Path(folder), _partitions, steps.say, copies)


def _partitions(text: str) -> list[str]:
    return state_partitions(plan_of(text))


def _verified_data(done: Verified) -> dict[str, Any]:
    return {
        "sound": done.sound,
        "batches": done.batches,
        "change_files": done.changes,
        "snapshots": done.snapshots,
        "built": done.built,
        "compared": done.compared,
        "findings": [
            {"level": f.level, "file": f.file, "what": f.what, "cure": f.cure}
            for f in done.findings
        ],
    }


def _show_verified(found: FoundState, done: Verified) -> None:
    for finding in done.findings:
        click.echo(f"{finding.level}: {finding.file}: {finding.what}\n  hint: {finding.cure}")
    click.echo(
        f"{found.name}: {done.batches} batches, {done.changes} change files, {done.snapshots} "
        f"snapshots, {done.built} partitions built, {done.compared} comparisons: "
        + ("sound" if done.sound else "damaged")
    )


def _text(value: object) -> str:
    return "-" if value is None else str(value)
