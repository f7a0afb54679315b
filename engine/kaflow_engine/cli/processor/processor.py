"""`kaflow processor`: create, start, stop, scale, list, show and delete Lenses processors."""

import click

from kaflow_engine.cli.processor.changing import delete, scale
from kaflow_engine.cli.processor.create import create
from kaflow_engine.cli.processor.showing import list_all, show
from kaflow_engine.cli.processor.switching import start, stop


@click.group("processor")
def command() -> None:
    """Operate Lenses processors, with the Dagster that runs them."""


for each in (create, start, stop, scale, list_all, show, delete):
    command.add_command(each)
