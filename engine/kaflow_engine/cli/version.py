"""`kaflow version`."""

import platform
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of

import click

from kaflow_engine.cli.options import json_option
from kaflow_engine.cli.output import print_json, print_table

DISTRIBUTION = "kaflow-dagster"

PARTS = ("pyspark", "duckdb", "pyarrow", "rocksdict", "confluent-kafka", "sqlglot", "pydantic")
"""Distributions that decide how a pipeline behaves."""


@click.command("version")
@json_option
def command(as_json: bool) -> None:
    """Show the version of kaflow and of what it is built on."""
    versions = {name: _installed(name) for name in (DISTRIBUTION, *PARTS)}
    versions["python"] = platform.python_version()
    if as_json:
        print_json(versions)
    else:
        print_table([(name, found or "not installed") for name, found in versions.items()])


def _installed(distribution: str) -> str | None:
    try:
        return version_of(distribution)
    except PackageNotFoundError:
        return None
