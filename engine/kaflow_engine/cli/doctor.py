"""`kaflow doctor`: what this machine has and what it lacks."""

import json
from dataclasses import asdict
from typing import get_args

import click
from rich.console import Console
from rich.table import Table

from kaflow_engine.runtime.spark.class_archive import make_spark_archive
from kaflow_engine.runtime.spark.jars import Bundle, fetch
from kaflow_engine.runtime.spark.machine import Check, inspect_machine
from kaflow_engine.testing.services.broker import make_broker_archive

_COLOURS = {"ok": "green", "missing": "red", "low": "yellow"}


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--fetch",
    "bundles",
    multiple=True,
    type=click.Choice([*get_args(Bundle), "all"]),
    help="Fetch Java archives first, so that later runs need no network.",
)
@click.option(
    "--archive",
    is_flag=True,
    help="Make archives of the classes that Java loads, so that Spark and the embedded broker "
    "start in half the time; some 20 s, once.",
)
def command(as_json: bool, bundles: tuple[str, ...], archive: bool) -> None:
    """Say what this machine has of what kaflow needs, and how to get the rest."""
    known: tuple[Bundle, ...] = get_args(Bundle)
    for bundle in known:
        if bundle in bundles or "all" in bundles:
            fetch(bundle)
    if archive:
        make_spark_archive()
        make_broker_archive()
    checks = inspect_machine()
    if as_json:
        print(json.dumps([asdict(check) for check in checks], indent=2))
    else:
        _show(checks)
    if any(check.fatal for check in checks):
        raise click.exceptions.Exit(1)


def _show(checks: tuple[Check, ...]) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    for check in checks:
        colour = _COLOURS[check.state] if check.state != "missing" or check.required else "yellow"
        table.add_row(check.name, f"[{colour}]{check.state}[/]", check.found)
        if check.cure:
            table.add_row("", "", f"[dim]{check.cure}[/]")
    console = Console()
    console.print(table)
    lacking = [check.name for check in checks if check.fatal]
    console.print(f"lacking: {', '.join(lacking)}" if lacking else "ready to run pipelines")
