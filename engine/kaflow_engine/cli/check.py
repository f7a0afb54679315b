"""`kaflow check`: check the rows that a pipeline has written."""

import json
from datetime import UTC, datetime
from pathlib import Path

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
from kaflow_engine.plan.planner.project import load_one

_SHOWN = 3


@click.command("check")
@click.argument("name")
@click.argument("paths", nargs=-1, metavar="[PATH]…", type=click.Path(path_type=Path))
@click.option(
    "--last",
    type=DurationType(),
    default="10m",
    show_default=True,
    help="Of a topic: rows whose time lies so far back.",
)
@click.option(
    "--partition", "partitions", multiple=True, help="Of a table; default: the newest two."
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
    docs: Path | None,
    config_path: Path | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Run the checks of the pipeline NAME over the rows that it has written.

    PATHs are the files and folders of the project, this folder unless given.
    """
    paths, config_path = with_config(paths, config_path, (Path(),))
    config = configuration(config_path, settings)
    spec = load_one(paths, name, config)
    if not spec.checks:
        raise ModelError(
            f"pipeline '{name}' has no checks", spec.at, "add checks: [{not_null: <column>}]"
        )
    from kaflow_engine.runtime.planning.output_checks import (
        check_output,  # it imports Arrow and the readers
    )

    checked = check_output(spec, config, last, partitions)
    if docs is not None:
        page = write_docs(docs, name, checked.what, datetime.now(UTC), checked.results)
        click.echo(f"wrote {page}", err=True)
    if as_json:
        print_json(
            {
                "of": checked.what,
                "rows": checked.rows,
                "checks": [result.data() for result in checked.results],
            }
        )
    else:
        for result in checked.results:
            _show(result)
        failed = sum(not result.passed for result in checked.results)
        click.echo(
            f"{checked.what}: {checked.rows} rows, {len(checked.results) - failed} checks passed, "
            f"{failed} failed"
        )
    if any(result.is_failure for result in checked.results):
        raise click.exceptions.Exit(1)


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
