"""Settings of the configuration that a pipeline file brings, such as where its brokers are."""

from dataclasses import dataclass

from kaflow_engine.errors import Location


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One value of the configuration."""

    path: tuple[str, ...]
    """Fields of `Config`, and names below them."""
    value: object
    """As `Config` holds it."""
    at: Location
    """Where the file says it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """Something outside that a file wants to open, and that the configuration must allow."""

    kind: str
    """A kind of database; `read`: a file; `write`: a folder."""
    at: Location
    path: str = ""
    """Of a file or folder, from the root."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """All that a file brings."""

    settings: tuple[Setting, ...] = ()
    openings: tuple[Opening, ...] = ()
    columns_key: str | None = None
    """Where the file declares columns of what it reads; None: under its topics and sources."""
    starting: tuple[str, ...] = ()
    """Lines for whoever starts the pipeline, without secrets: what is done before it is ready."""
    ready: str | None = None
    """The line that says that it is."""
