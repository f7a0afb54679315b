"""`kaflow processor list | show`: how processors do, from what they report to Dagster."""

from datetime import UTC, datetime

import click

from kaflow_engine.cli.options import json_option
from kaflow_engine.cli.output import print_json, print_table
from kaflow_engine.cli.processor.options import dagster_option, find_stream, processors
from kaflow_engine.cli.processor.switching import state_of
from kaflow_engine.connectors.dagster.client import Dagster, StreamRun
from kaflow_engine.connectors.dagster.streams import Stream
from kaflow_engine.masking import without_secrets

_HEAD = ("name", "state", "lag", "runners", "reported")
_NUMBERS = ("verdict", "lag", "records_per_second", "batch", "batch_ms", "waiting", "dead_letters")


@click.command("list")
@dagster_option
@json_option
def list_all(url: str, as_json: bool) -> None:
    """List all processors: their state, lag and runners."""
    dagster = Dagster(url)
    rows = [
        (each, state_of(each, dagster.switch(each), dagster.runs(each)))
        for each in processors(dagster)
    ]
    if as_json:
        print_json(
            [
                {
                    "name": stream.name,
                    "state": state,
                    "lag": stream.report.get("lag"),
                    "runners": stream.partitions,
                    "reported": _time(stream.reported),
                }
                for stream, state in rows
            ]
        )
    elif rows:
        print_table([_HEAD, *(_row(stream, state) for stream, state in rows)])
    else:
        click.echo(f"no processors at {dagster.address}")


@click.command("show")
@click.argument("name")
@dagster_option
@json_option
def show(name: str, url: str, as_json: bool) -> None:
    """Show how a processor does: verdict, lag, rates, newest run, and the drawing of its plan."""
    dagster = Dagster(url)
    stream = find_stream(dagster, name)
    switch, runs = dagster.switch(stream), dagster.runs(stream)
    facts = {
        "state": state_of(stream, switch, runs),
        "problem": stream.problem,
        **{key: stream.report.get(key) for key in _NUMBERS},
        "watermark": _time(_number(stream, "watermark")),
        "reported": _time(stream.reported),
        "last_error": stream.report.get("last_error"),
        "runners": stream.partitions,
        "run": _about(runs[0]) if runs else None,
        "log": f"{dagster.address}/runs/{runs[0].id}" if runs else None,
        "status": stream.report.get("status"),
        "switch": f"{stream.sensor}: {'on' if switch.on else 'off'}",
        "switch_says": switch.says if switch.on else None,
        "together": ", ".join(other for other in stream.together if other != name) or None,
    }
    if as_json:
        print_json({"name": name, **facts, "plan": stream.plan})
        return
    print_table([("name", name), *((k, str(v)) for k, v in facts.items() if v is not None)])
    if stream.plan:
        click.echo(f"\n{without_secrets(stream.plan)}")


def _row(stream: Stream, state: str) -> tuple[str, ...]:
    lag = str(stream.report.get("lag", "-"))
    runners = str("default" if stream.partitions is None else stream.partitions)
    return (stream.name, state, lag, runners, _time(stream.reported) or "-")


def _about(run: StreamRun) -> str:
    since = f" since {_time(run.began)}" if run.live and run.began else ""
    return f"{run.id} {run.status.lower()}{since}"


def _number(stream: Stream, key: str) -> float | None:
    value = stream.report.get(key)
    return float(value) if value is not None else None


def _time(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return "the end of the input"
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
