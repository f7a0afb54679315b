"""`kaflow backfill`: run a pipeline over a range of event time."""

import time
from datetime import UTC, datetime
from pathlib import Path

import click

from kaflow_engine.cli.options import (
    config_option,
    configuration,
    json_option,
    master_option,
    set_option,
    with_config,
)
from kaflow_engine.cli.run.progress_file import progress_file
from kaflow_engine.cli.run.running import Manner, run_in_front
from kaflow_engine.cli.stopping import stop_requests
from kaflow_engine.flow.flow import Backfill, instant
from kaflow_engine.plan.planner.project import load_one
from kaflow_engine.runtime.drive.backfill_guard import check_backfill


class InstantType(click.ParamType[int]):
    """An instant as ISO 8601, UTC unless it says otherwise; epoch milliseconds to the command."""

    name = "time"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        try:
            found = datetime.fromisoformat(str(value))
        except ValueError:
            self.fail(f"'{value}' is no time; write 2026-01-31 or 2026-01-31T09:30:00Z", param, ctx)
        return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)


@click.command("backfill")
@click.argument("name")
@click.argument("paths", nargs=-1, metavar="[PATH]…", type=click.Path(path_type=Path))
@click.option("--from", "start", type=InstantType(), required=True, help="First event time.")
@click.option("--to", "end", type=InstantType(), required=True, help="Event time to end before.")
@click.option(
    "--force",
    is_flag=True,
    help="Also where the stream may still write, or rows would go that are not made again.",
)
@click.option("--restart", is_flag=True, help="Do not go on with an earlier, unfinished try.")
@click.option("--plain", is_flag=True, help="Print lines instead of a live table.")
@click.option(
    "--progress",
    "progress_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Append what each batch did to this file, one JSON object a line.",
)
@config_option
@set_option
@master_option
@json_option
def command(
    name: str,
    paths: tuple[Path, ...],
    start: int,
    end: int,
    force: bool,
    restart: bool,
    plain: bool,
    progress_path: Path | None,
    config_path: Path | None,
    settings: tuple[str, ...],
    master: str | None,
    as_json: bool,
) -> None:
    """Run the pipeline NAME over a range of event time, beside its stream.

    PATHs are the files and folders of the project, this folder unless given. Rows carry the header
    kaflow.backfill. A backfill that was interrupted goes on when it is started again.
    """
    if start >= end:
        raise click.BadParameter("--to must be later than --from", param_hint="--to")
    if end > time.time() * 1000:
        raise click.BadParameter(f"{instant(end)} lies in the future", param_hint="--to")
    paths, config_path = with_config(paths, config_path, (Path(),))
    config = configuration(config_path, settings, master)
    spec = load_one(paths, name, config)
    wanted = Backfill(start=start, end=end, slack=spec.backfill.slack, force=force)
    check_backfill(spec, config, wanted)
    manner = Manner(plain=plain, as_json=as_json, backfill=wanted, restart=restart)
    with stop_requests() as asked, progress_file(progress_path) as note:
        run_in_front([spec], config, manner, asked, note)
