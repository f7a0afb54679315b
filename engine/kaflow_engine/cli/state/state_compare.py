"""`kaflow state diff`: what two batches of a state, or two states, differ in."""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from kaflow_engine.cli.options import configuration, json_option
from kaflow_engine.cli.output import Steps, print_json, print_table
from kaflow_engine.cli.state.state_list import configured
from kaflow_engine.model.config import Config
from kaflow_engine.runtime.maintenance.catalog import (
    find_state,
    found_state,
    log_of,
    readable,
    snapshots_of,
)
from kaflow_engine.runtime.maintenance.catalog import state_root as root_of
from kaflow_engine.runtime.maintenance.diff import Difference, differences
from kaflow_engine.runtime.maintenance.view import open_view
from kaflow_engine.state.log.batch_log import STATE

_SHOWN = 100


@click.command("diff")
@click.argument("before")
@click.argument("after")
@click.option(
    "--limit", type=click.IntRange(min=1), default=_SHOWN, show_default=True, help="Rows to show."
)
@configured
@json_option
def diff(
    before: str,
    after: str,
    limit: int,
    config_path: Path | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Compare two states, each PIPELINE, PIPELINE@BATCH, or a state directory.

    Keys that were added, removed or changed are shown with their values; the index by due time is
    left out.
    """
    config = configuration(config_path, settings)
    steps = Steps()
    counts: Counter[str] = Counter()
    shown: list[Difference] = []
    with ExitStack() as views:
        one, other = (views.enter_context(_view(config, name, steps)) for name in (before, after))
        for found in differences(one, other):
            counts[found.change] += 1
            if len(shown) < limit:
                shown.append(found)
    if as_json:
        totals = {change: counts[change] for change in ("added", "removed", "changed")}
        print_json({**totals, "differences": [found.data() for found in shown]})
        return
    if shown:
        head = ("", "operator", "side", "key", "record", "values")
        print_table([head, *(cells for found in shown for cells in _cells(found))])
    said = ", ".join(f"{counts[change]} {change}" for change in ("added", "removed", "changed"))
    rest = sum(counts.values()) - len(shown)
    click.echo(said + (f"; {rest} are not shown" if rest else ""), err=True)


COMMANDS = (diff,)


def _view(config: Config, name: str, steps: Steps) -> Any:
    path = Path(name)
    if (path / STATE).is_file():
        found, batch = found_state(path.absolute()), None
    else:
        pipeline, at, number = name.rpartition("@")
        if at and not number.isdecimal():
            raise click.UsageError(f"'{name}' has no number of a batch behind the @")
        found = find_state(root_of(config), pipeline if at else name)
        batch = int(number) if at else None
    log = log_of(readable(found))
    return open_view(log, snapshots_of(found), batch, steps.say)


def _cells(found: Difference) -> Iterator[tuple[str, ...]]:
    about = (found.operator, found.side, _text(found.key), _text(found.record))
    match found.change:
        case "added":
            yield "+", *about, _values(found.after)
        case "removed":
            yield "-", *about, _values(found.before)
        case "changed":
            yield "≠", *about, _values(found.before)
            yield "", "", "", "", "→", _values(found.after)


def _values(values: dict[str, Any] | None) -> str:
    return ", ".join(f"{name}={_text(value)}" for name, value in (values or {}).items())


def _text(value: object) -> str:
    return "-" if value is None else str(value)
