"""`kaflow state`: look at what pipelines remember, check it, and change it while they stand still.

Each part of it adds its commands to the group.
"""

import click

from kaflow_engine.cli.state import (
    state_change,
    state_checkpoints,
    state_compare,
    state_list,
    state_rows,
)


@click.group("state")
def command() -> None:
    """Look at the states of pipelines, check and change them."""


for part in (state_list, state_rows, state_compare, state_change, state_checkpoints):
    for each in part.COMMANDS:
        command.add_command(each)
