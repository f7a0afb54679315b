"""What a processor's YAML says, as frozen data."""

from pydantic import Field

from kaflow_engine.model.files.shapes import Shape
from kaflow_engine.model.names import Filled, GroupName, Name
from kaflow_engine.model.sources.nulls import Strictness
from kaflow_engine.model.sources.topic_specs import TopicSpec
from kaflow_engine.model.spec import Spec


class ProcessorTopicSpec(TopicSpec):
    """How one input topic is read."""

    key_columns: dict[str, Filled] = Field(default={})
    """Fields of a key that is a JSON object with their types; a field of a field is `a.b`."""
    nullable: tuple[Filled, ...] = ()
    """Those of `columns` that can be NULL; a field of a field is `a.b`."""


class ProcessorSpec(Spec):
    """A processor, without what its SQL says."""

    name: Name | None = None
    """None: that of the file."""
    processor_id: Name | None = None
    """Names the processor's state, markers and consumer group; None: the name."""
    sql: Filled | None = None
    """None: it stands in a file of the same name that ends in `.processor.sql`."""
    runners: int | None = Field(default=None, gt=0, le=256)
    """How many tasks share the work."""
    description: str | None = None
    owners: tuple[Filled, ...] = ()
    group: GroupName | None = None
    strict_nulls: Strictness = "on"
    """Whether an expression that can be NULL may stand where Lenses takes none."""
    topics: dict[str, ProcessorTopicSpec] = Field(default={})


SHAPE = Shape(noun="key", later={})
