"""Topics of whose records no sample is taken: their columns are declared, or registered."""

from collections.abc import Mapping
from dataclasses import dataclass

from kaflow_engine.errors import Location


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRead:
    """Where a file reads a topic for the first time."""

    at: Location
    field: str | None = None
    """The field that is read there; None: all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaFirst:
    """What a front end says of topics whose schemas must be known before they are read."""

    topics: Mapping[str, FirstRead]
    way_out: str
    """Where a schema may be declared."""
