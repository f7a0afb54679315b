"""Sources that are no topics: what is said of their records is what a topic would say."""

from collections.abc import Mapping
from typing import Any

from tests.reference.unions import NotExpressible

_OF_RECORDS = (
    *("columns", "event_time", "lateness", "idle_timeout", "max_future", "on_error", "lookup"),
    *("history", "table", "primary_key", "operation", "retain"),
)
UNREADABLE = "kaflow.unreadable"
"""Header of a record that stands for what cannot be read."""


def with_sources_as_topics(author: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a pipeline that reads topics in the place of its sources.

    Raises:
        NotExpressible: Lines of CSV, which the oracle cannot read.
    """
    sources = author.get("sources", {})
    if any(said.get("format") == "csv" for said in sources.values()):
        raise NotExpressible("CSV")
    read = {
        name: {key: said[key] for key in said if key in _OF_RECORDS}
        for name, said in sources.items()
    }
    return {**author, "topics": {**author.get("topics", {}), **read}} if read else author
