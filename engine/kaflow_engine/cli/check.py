"""`kaflow check`: check the rows that a pipeline has written."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kaflow_engine.checks.docs import write_docs
from kaflow_engine.checks.results import CheckResult
from kaflow_engine.cli.options import (
    DurationType,
    config_option,
    configuration,
    json_option,
    set_option,
    with_config,
)
from kaflow_engine.cli.output import print_json
from kaflow_engine.errors import ModelError
from kaflow_engine.model.checks import MOST_ROWS
from kaflow_engine.model.configuration.with_brought import with_brought
from kaflow_engine.plan.planner.project import load_one

if TYPE_CHECKING:
    from kaflow_engine.runtime.output_checks import Checked

_SHOWN = 3


@click.command("check")
@click.argument("name")
@click.argument("paths", nargs=-1, metavar="[PATH]…", type=click.Path(path_type=Path))
@click.option(
    "--last",
    type=DurationType(),
    default="10m",
    show_default=True,
    help="Of a topic: rows whose time lies so far back. Of files: those that were written since.",
)
@click.option(
    "--partition", "partitions", multiple=True, help="Of a table; default: the newest two."
)
@click.option(
    "--rows",
    "most",
    type=click.IntRange(min=1),
    default=MOST_ROWS,
    show_default=True,
    help="Of a database, a catalog or a folder: the most that are looked at.",
)
@click.option(
    "--docs",
    type=click.Path(path_type=Path, file_okay=False),
    help="A folder for a page about what was found; it needs no network.",
)
@config_option
@set_option
@json_option
def command(
    name: str,
    paths: tuple[Path, ...],
    last: int,
    partitions: tuple[str, ...],
    most: int,
    docs: Path | None,
    config_path: Path | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Run the checks of the pipeline NAME over the rows that it has written.

    Of several outputs, those that have checks are looked at, one after the other. PATHs are the
    files and folders of the project, this folder unless given.
    """
    paths, config_path = with_config(paths, config_path, (Path(),))
    config = configuration(config_path, settings)
    spec = load_one(paths, name, config)
    config = with_brought(config, [spec])
    wanted = [write for write in spec.writes if write.checks]
    if not wanted:
        raise ModelError(
            f"pipeline '{name}' has no checks",
            spec.at,
            "add checks: [{not_null: <column>}]" + (" to an output" if spec.outputs else ""),
        )
    from kaflow_engine.runtime.output_checks import (
        check_output,  # it imports Arrow and the readers
    )

    found: list[Checked] = []
    for write in wanted:
        checked = check_output(
            spec, write, config, last, partitions if write.output.table is not None else (), most
        )
        found.append(checked)
        if docs is not None:
            title = f"{name}.{write.target}" if spec.outputs else name
            page = write_docs(docs, title, checked.what, datetime.now(UTC), checked.results)
            click.echo(f"wrote {page}", err=True)
        if not as_json:
            _print(checked)
    if as_json:
        data = [_data(checked) for checked in found]
        print_json({"outputs": data} if spec.outputs else data[0])
    if any(result.is_failure for checked in found for result in checked.results):
        raise click.exceptions.Exit(1)


def _data(checked: "Checked") -> dict[str, object]:
    return {
        "of": checked.what,
        "rows": checked.rows,
        "checks": [result.data() for result in checked.results],
    }


def _print(checked: "Checked") -> None:
    for result in checked.results:
        _show(result)
    failed = sum(not result.passed for result in checked.results)
    click.echo(
        f"{checked.what}: {checked.rows} rows, {len(checked.results) - failed} checks passed, "
        f"{failed} failed"
    )


def _show(result: CheckResult) -> None:
    verdict = "ok" if result.passed else "FAILED" if result.is_failure else "warn"
    details = [result.error] if result.error else []
    if result.failed:
        details.append(f"{result.failed} of {result.rows} rows")
    elif result.observed is not None:
        details.append(f"observed {json.dumps(result.observed, default=str)}")
    click.echo(f"{verdict:7} {result.check.name}{': ' if details else ''}{'; '.join(details)}")
    for row in result.sample[:_SHOWN]:
        click.echo(f"        {json.dumps(row, ensure_ascii=False, default=str)}")
