"""`kaflow processor start | stop`: the switch of a processor in Dagster."""

from collections.abc import Sequence

import click

from kaflow_engine.cli.processor.options import dagster_option, find_stream
from kaflow_engine.connectors.dagster.client import Dagster, StreamRun, Switch
from kaflow_engine.connectors.dagster.streams import Stream
from kaflow_engine.errors import ModelError, UnknownName

group_option = click.option(
    "--group", "whole", is_flag=True, help="Also where others share its run, for all of them."
)


@click.command("start")
@click.argument("name")
@group_option
@dagster_option
def start(name: str, whole: bool, url: str) -> None:
    """Turn a processor on: Dagster keeps it running from now on."""
    dagster = Dagster(url)
    try:
        stream = find_stream(dagster, name)
    except UnknownName:
        dagster.reload()  # it may have been created since
        stream = find_stream(dagster, name)
    if stream.problem is not None:
        raise ModelError(f"processor '{name}' is broken: {stream.problem}")
    refuse_others(stream, whole=whole, doing="start")
    switch = dagster.switch(stream)
    live = [run for run in dagster.runs(stream) if run.live]
    if switch.on and live:
        click.echo(f"{name}: it is on, and run {live[0].id} streams")
        return
    if switch.on:  # off and on ends what held it, such as a run that was terminated
        dagster.switch_off(switch)
    dagster.switch_on(stream)
    click.echo(f"{name}: on; `kaflow processor show {name}` says how it does")


@click.command("stop")
@click.argument("name")
@group_option
@dagster_option
def stop(name: str, whole: bool, url: str) -> None:
    """Turn a processor off: its run finishes its batch and ends."""
    dagster = Dagster(url)
    stream = find_stream(dagster, name)
    refuse_others(stream, whole=whole, doing="stop")
    switch = dagster.switch(stream)
    if switch.on:
        dagster.switch_off(switch)
    live = [run for run in dagster.runs(stream) if run.live]
    for run in live:
        if run.status != "CANCELING":
            dagster.terminate(run)
    click.echo(f"{name}: off; {_said(live)}")


def state_of(stream: Stream, switch: Switch, runs: Sequence[StreamRun]) -> str:
    """Return what a processor does, in a word."""
    live = any(run.live for run in runs)
    if stream.problem is not None:
        return "broken"
    if not switch.on:
        return "stopping" if live else "stopped"
    return "running" if any(run.status == "STARTED" for run in runs) else "starting"


def refuse_others(stream: Stream, *, whole: bool, doing: str) -> None:
    """Refuse to switch what others share, unless that is wanted.

    Args:
        stream: Of a processor.
        whole: It is wanted.
        doing: For the way out: `start` or `stop`.

    Raises:
        ModelError: Others share its run.
    """
    others = [f"'{name}'" for name in stream.together if name != stream.name]
    if others and not whole:
        raise ModelError(
            f"processor '{stream.name}' shares its run with {', '.join(others)}, in group "
            f"'{stream.run}'",
            hint=f"{doing} all of them with --group",
        )


def _said(live: Sequence[StreamRun]) -> str:
    if not live:
        return "no run was live"
    return ", ".join(f"run {run.id}" for run in live) + " finishes its batch and ends"
