"""What a pipeline file says of its relations: named queries, and readings."""

from typing import Literal

from pydantic import Field

from kaflow_engine.model.durations import Duration
from kaflow_engine.model.names import Filled, Operation, Topic
from kaflow_engine.model.query_settings import QuerySettings
from kaflow_engine.model.spec import Spec

OF_ROWS = ("as", "key", "deletes")
"""Keys of a relation that say how another one is read."""
OF_READINGS = ("table", "primary_key", "operation", "retain", "event_time")
"""Keys of a relation that say how a topic is read."""


class BatchSpec(Spec):
    """Runs of rows."""

    size: int = Field(gt=0, le=1_000_000)
    """Rows of a run."""
    every: Duration | None = None
    """How long after its first row a run is made of what there is, in ms of batch time; None: it
    waits for the others."""
    per: Literal["partition"] | None = None
    """Each source partition makes runs of its own; None: all make the same."""


class RelationSpec(QuerySettings):
    """A name that the pipeline's query and its other relations may read: what stands behind it is a
    query, a topic in another way than under its own name, a relation in another way, or runs of its
    rows."""

    query: Filled | None = None
    topic: Topic | None = None
    """Which one is read; the other keys of a reading are as those of a topic."""
    table: bool = False
    primary_key: tuple[Filled, ...] = ()
    operation: Operation | None = None
    retain: Duration | None = None
    event_time: Filled | None = None
    """None: as of the topic."""
    from_: Filled | None = Field(default=None, alias="from")
    """The relation that is read; with `batch` it may be a topic, and `query` reads its rows."""
    batch: BatchSpec | None = None
    """How many rows of `from` the query reads at once, as `batch`; None: it is one over streams."""
    as_: Literal["table", "append"] | None = Field(default=None, alias="as")
    key: tuple[Filled, ...] = ()
    """Of a table: columns of the relation that is read."""
    deletes: bool = False
    """Of append rows: a row of the table that goes is one of them, too."""
    description: str | None = None
