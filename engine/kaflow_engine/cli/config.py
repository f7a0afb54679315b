"""`kaflow config show`."""

from pathlib import Path

import click

from kaflow_engine.cli.options import config_option, configuration, json_option, set_option
from kaflow_engine.cli.output import print_json, print_table
from kaflow_engine.model.configuration.show_config import settings_of


@click.group("config")
def command() -> None:
    """Show the configuration and where each value comes from."""


@command.command()
@config_option
@set_option
@json_option
def show(config_path: Path | None, settings: tuple[str, ...], as_json: bool) -> None:
    """Print every value with its origin; secrets are masked."""
    shown = settings_of(configuration(config_path, settings))
    if as_json:
        print_json({item.key: {"value": item.value, "origin": item.origin} for item in shown})
    else:
        print_table([(item.key, item.text, item.origin) for item in shown])
