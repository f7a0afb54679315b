"""`kaflow state show`: what a pipeline remembers, as rows."""

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from kaflow_engine.cli.options import configuration, json_option
from kaflow_engine.cli.output import Steps, print_json, print_table
from kaflow_engine.cli.state.state_list import configured, time_text
from kaflow_engine.errors import StateError, UnknownName
from kaflow_engine.flow.chains.chain import number_of_state
from kaflow_engine.flow.graph import state_names
from kaflow_engine.model.config import Config
from kaflow_engine.model.durations import format_duration
from kaflow_engine.operators.inspect.entry_columns import Decoded
from kaflow_engine.operators.inspect.state_sides import (
    StateSide,
    chosen_sides,
    operator_called,
    state_sides,
)
from kaflow_engine.runtime.maintenance.catalog import (
    find_state,
    log_of,
    readable,
    snapshots_of,
    state_root,
)
from kaflow_engine.runtime.maintenance.rows import StateTable, decoded_parts, parts_for
from kaflow_engine.runtime.maintenance.view import StateView, moment_of, open_view

FORMATS = ("table", "json", "parquet", "duckdb")
_SHOWN = 100


@click.command("show")
@click.argument("pipeline")
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--key", help="Only what is kept under this join key.")
@click.option("--operator", type=click.IntRange(min=1), help="Only this step, as `size` counts.")
@click.option("--side", "side_name", help="Only this side: a topic, its alias, or such as waiting.")
@click.option("--at", type=click.IntRange(min=0), help="As it was after this batch.")
@click.option("--limit", type=click.IntRange(min=1), help="At most so many rows.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="table", show_default=True)
@configured
@json_option
def show(
    pipeline: str,
    file: Path | None,
    key: str | None,
    operator: int | None,
    side_name: str | None,
    at: int | None,
    limit: int | None,
    form: str,
    config_path: Path | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Show the rows of a state, also while its pipeline runs.

    Tables and JSON have 100 rows unless --limit says otherwise. FILE is what `--format parquet` and
    `--format duckdb` write; it must not exist.
    """
    form = "json" if as_json else form
    _check_file(form, file)
    found = Shown(configuration(config_path, settings), pipeline, key, operator, side_name, at)
    steps = Steps()
    if file is None:
        rows = list(found.rows(limit or _SHOWN, steps))
        if form == "json":
            print_json(rows)
            return
        if rows:
            print_table([_HEAD, *map(_cells, rows)])
        click.echo(f"{len(rows)} rows of {pipeline}", err=True)
        return
    click.echo(f"{found.write(form, file, limit, steps)} rows in {file}", err=True)


COMMANDS = (show,)


class Shown:
    """The rows that were asked for.

    Raises:
        KaflowError: There is no such state or side.
    """

    def __init__(
        self,
        config: Config,
        pipeline: str,
        key: str | None,
        operator: int | None,
        side: str | None,
        at: int | None,
    ) -> None:
        found = readable(find_state(state_root(config), pipeline))
        self._log, self._snapshots = log_of(found), snapshots_of(found)
        self._key, self._at = key, at
        plan = moment_of(self._log, at).plan
        self._sides = chosen_sides(plan, operator, side)
        if operator is not None and operator not in state_names(plan):
            steps = ", ".join(
                f"{step} ({operator_called(step, plan)})" for step in state_names(plan)
            )
            raise StateError(
                f"'{found.name}' has no operator {operator} with state", hint=f"known: {steps}"
            )
        if side is not None and not self._sides:
            raise UnknownName("side", side, _names(state_sides(plan)))
        if key is not None:
            self._sides = [each for each in self._sides if each.has_keys]

    def rows(self, limit: int, steps: Steps) -> Iterator[dict[str, Any]]:
        """Yield rows as plain data."""
        now = time.time_ns() // 1_000_000
        with self._view(steps) as view:
            left = limit
            for side in self._sides:
                for part in decoded_parts(view, side, self._key, left):
                    for row in _data(view, side, part, now):
                        yield row
                        left -= 1
                if not left:
                    return

    def write(self, form: str, file: Path, limit: int | None, steps: Steps) -> int:
        """Write rows into a file; return how many."""
        now = time.time_ns() // 1_000_000
        part = file.with_name(f".{file.name}.part")
        part.unlink(missing_ok=True)
        table = StateTable(part if form == "duckdb" else None)
        try:
            with self._view(steps) as view:
                for side in self._sides:
                    left = None if limit is None else limit - table.rows
                    for found in decoded_parts(view, side, self._key, left) if left != 0 else ():
                        table.add(view, side, found, now)
            table.finish()
            if form == "parquet":
                table.write_parquet(part)
        except BaseException:
            table.close()
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise
        table.close()
        part.rename(file)
        return table.rows

    def _view(self, steps: Steps) -> Any:
        plan = moment_of(self._log, self._at).plan
        numbers = sorted({side.step for side in self._sides})
        wanted = parts_for(plan, numbers, self._key)
        return open_view(self._log, self._snapshots, self._at, steps.say, wanted)


_HEAD = ("operator", "side", "key", "record", "event time", "age", "expires", "values")


def _data(view: StateView, side: StateSide, found: Decoded, now: int) -> Iterator[dict[str, Any]]:
    mark = view.moment.watermarks.get(number_of_state(side.step))
    operator = operator_called(side.step, view.moment.plan)
    for row in found.json_rows():
        ts, due = row["ts"], row["due"]
        yield {
            "step": side.step,
            "operator": operator,
            "side": side.name,
            "kind": side.kind,
            "key": row["key"],
            "record": row["record"],
            "event_time": time_text(ts),
            "age_seconds": None if ts is None else round((now - ts) / 1000, 1),
            "expires": time_text(due),
            "expired": due is not None and mark is not None and due < mark,
            "values": row["value"],
        }


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    age = row["age_seconds"]
    values = ", ".join(f"{name}={_text(value)}" for name, value in row["values"].items())
    return (
        row["operator"],
        row["side"],
        _text(row["key"]),
        _text(row["record"]),
        _text(row["event_time"]),
        "-" if age is None or age < 0 else format_duration(int(age) * 1000),
        f"{_text(row['expires'])}{' (over)' if row['expired'] else ''}",
        values,
    )


def _text(value: object) -> str:
    return "-" if value is None else str(value)


def _names(sides: Sequence[StateSide]) -> set[str]:
    return {name for side in sides for name in (side.name, side.alias) if name is not None}


def _check_file(form: str, file: Path | None) -> None:
    if form in ("parquet", "duckdb"):
        if file is None:
            raise click.UsageError(f"--format {form} needs a FILE to write, behind it")
        if file.exists():
            raise click.UsageError(f"'{file}' exists; name a file that does not")
    elif file is not None:
        raise click.UsageError(f"a FILE needs --format parquet or duckdb, not {form}")
