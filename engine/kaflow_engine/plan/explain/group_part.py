"""What there is to say of rows that are gathered: groups, and runs of rows."""

from dataclasses import dataclass

from kaflow_engine.flow.operators import Leaves


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPart:
    """One call of an aggregate function."""

    sql: str
    keeps: bool | None
    """It needs all rows of the group, which are kept, rather than an accumulator; None: not known
    yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPart:
    """Runs of rows."""

    size: int
    every: int | None
    """Milliseconds after its first row at which a run is made of what there is."""
    per_partition: bool
    sql: str
    """Over `batch`, on one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendPart:
    """Changes of a table that are rows of their own."""

    of: str
    deletes: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformPart:
    """Rows that a transform makes of others."""

    name: str
    type: str
    added: tuple[str, ...]
    """Columns that it adds or gives another type, with their types."""
    removed: tuple[str, ...]
    about: str
    """What it is, in a few words of its kind."""
    kept: str
    """What is kept of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPart:
    """One GROUP BY or DISTINCT; durations in ms."""

    distinct: bool
    keys: tuple[str, ...]
    window: str | None
    calls: tuple[CallPart, ...]
    having: tuple[str, ...]
    leaves: Leaves
    run: RunPart | None
    """Runs of rows, instead of groups."""
    append: AppendPart | None
    """Changes of a table, instead of groups."""
    transform: TransformPart | None
    """A transform, instead of groups."""
    each: bool
    """Every change leaves, else one for each group and batch."""
    grace: int
    on_late: str
    delay: int | None
    """How far its watermark is behind that of the topics; None: not known yet."""
    ttl: int | None
    """How long groups without a window are kept behind their last record, and of DISTINCT behind
    their first; None: for ever, and of DISTINCT: not known yet."""
    retracts: bool
    """Its rows are those of a table, and are taken away from it, too."""
    strict: bool
    """Neither lateness nor grace lets a record of a window come late."""
    retain: int | None = None
    """How long operators that read windows as a table see one after it was closed; None: for
    ever."""
    branches: int = 1
    """Those of a UNION ALL whose rows it takes."""
    travels: bool = True
    """Its rows are elsewhere before; else they are where they were joined or grouped."""
