"""What the commands for processors share: which Dagster, and a processor of it by its name."""

import click

from kaflow_engine.connectors.dagster.client import Dagster
from kaflow_engine.connectors.dagster.streams import Stream
from kaflow_engine.errors import ModelError, UnknownName
from kaflow_engine.model.lenses.front_end import LensesProcessors

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
    return tuple(each for each in dagster.streams() if each.front_end == LensesProcessors.name)


def find_stream(dagster: Dagster, name: str) -> Stream:
    """Return the stream of a processor.

    Raises:
        UnknownName: There is none.
        ModelError: There are several.
        DagsterAway: No one answers.
    """
    known = processors(dagster)
    found = [each for each in known if each.name == name]
    if not found:
        raise UnknownName("processor", name, [each.name for each in known])
    if len(found) > 1:
        places = ", ".join(f"'{each.location}'" for each in found)
        hint = "give one of them another name: runs are named by it"
        raise ModelError(f"code locations {places} each have a processor '{name}'", hint=hint)
    return found[0]
