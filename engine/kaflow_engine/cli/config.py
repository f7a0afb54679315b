"""`kaflow config show`, and `kaflow config keys`."""

from dataclasses import asdict
from pathlib import Path

import click

from kaflow_engine.cli.options import config_option, configuration, json_option, set_option
from kaflow_engine.cli.output import print_json, print_table
from kaflow_engine.errors import UnknownName
from kaflow_engine.model.configuration.show_config import settings_of
from kaflow_engine.model.reference.keys import kinds
from kaflow_engine.model.reference.keys_page import page_of


@click.group("config")
def command() -> None:
    """Show the configuration, where each value comes from, and which keys there are."""


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


@command.command()
@click.argument("wanted", metavar="[TYPE]…", nargs=-1)
@click.option("--markdown", is_flag=True, help="As the page of the documentation.")
@json_option
def keys(wanted: tuple[str, ...], markdown: bool, as_json: bool) -> None:
    """Print which keys sources, outputs, relations and connections of TYPE take; of all types
    without one."""
    known = kinds()
    for name in wanted:
        if name not in {kind.type for kind in known}:
            raise UnknownName("type", name, sorted({kind.type for kind in known}))
    shown = [kind for kind in known if not wanted or kind.type in wanted]
    if as_json:
        print_json([asdict(kind) for kind in shown])
    elif markdown:
        click.echo(page_of(shown), nl=False)
    else:
        for kind in shown:
            click.echo(f"{kind.section}: {kind.type}")
            print_table(
                [
                    (f"  {key.name}", "required" if key.is_required else key.default, key.about)
                    for key in kind.keys
                ]
            )
