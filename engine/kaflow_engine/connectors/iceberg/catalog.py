"""Catalogs of Iceberg: opened when they are needed, and their errors in our own words."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kaflow_engine.connectors.contract import Output
from kaflow_engine.connectors.iceberg.errors import IcebergAway, IcebergUnfit, is_away
from kaflow_engine.errors import KaflowError
from kaflow_engine.extras import EXTRAS

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

_SHOWN = 600
"""Characters of an error."""


@contextmanager
def opened(output: Output, doing: str) -> "Generator[Catalog]":
    """Give the catalog of an output, and close it; what it raises becomes an error of our own.

    Args:
        output: Whose.
        doing: What for, as errors say it.

    Raises:
        IcebergAway: Catalog or storage do not answer, or another writer was faster.
        IcebergUnfit: They refuse, the connection is not configured, or pyiceberg is not installed.
    """
    try:
        from pyiceberg.catalog import load_catalog
    except ImportError as error:
        raise IcebergUnfit(
            "outputs of type iceberg need the library pyiceberg, which is not installed here",
            hint=f"run {EXTRAS['iceberg'].install}",
        ) from error
    said = output.connection.get("properties")
    if not said:
        raise IcebergUnfit(
            f"connection '{output.settings.get('connection')}' of output '{output.name}' is not in "
            "the configuration",
            hint="add it under iceberg.connections in kaflow.yaml",
        )
    properties: dict[str, str] = json.loads(said)
    try:
        catalog = load_catalog(str(output.settings.get("connection")), **properties)
        try:
            yield catalog
        finally:
            catalog.close()
    except KaflowError:
        raise
    except Exception as error:
        text = " ".join(str(error).split())[:_SHOWN]
        message = f"{doing} of output '{output.name}' failed: {type(error).__name__}: {text}"
        if is_away(error):
            raise IcebergAway(message, hint=_hint_away(error)) from error
        raise IcebergUnfit(message) from error


def _hint_away(error: Exception) -> str | None:
    if type(error).__name__ == "CommitFailedException":
        return "another program writes the table all the time; the batch is run again"
    return None
