"""What the commands for processors share: which Dagster, and a processor of it by its name."""

import click

from kaflow_engine.connectors.dagster.client import Dagster
from kaflow_engine.connectors.dagster.streams import PROCESSOR, Stream
from kaflow_engine.errors import UnknownName

dagster_option = click.option(
    "--dagster",
    "url",
    metavar="URL",
    envvar="DAGSTER_URL",
    show_envvar=True,
    default="http://127.0.0.1:3000",
    show_default=True,
    help="Where the page of Dagster is.",
)


def processors(dagster: Dagster) -> tuple[Stream, ...]:
    """Return all processors of a Dagster, by name.

    Raises:
        DagsterAway: No one answers.
    """
    return tuple(each for each in dagster.streams() if each.front_end == PROCESSOR)


def find_stream(dagster: Dagster, name: str) -> Stream:
    """Return the stream of a processor.

    Raises:
        UnknownName: There is none.
        DagsterAway: No one answers.
    """
    found = {each.name: each for each in processors(dagster)}
    if name not in found:
        raise UnknownName("processor", name, found)
    return found[name]
