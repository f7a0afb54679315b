"""What a processor's YAML says, as frozen data."""

from collections.abc import Mapping

from pydantic import Field

from kaflow_engine.model.files.shapes import Shape
from kaflow_engine.model.names import Filled, GroupName, Name
from kaflow_engine.model.sources.nulls import Strictness
from kaflow_engine.model.sources.topic_specs import TopicSchemaSpec
from kaflow_engine.model.spec import Spec


def struct_type(fields: Mapping[str, str]) -> str:
    """Return the DuckDB type of a structure with these fields.

    >>> struct_type({"id.a": "BIGINT", "x": "VARCHAR", "id.b": "DATE"})
    'STRUCT("id" STRUCT("a" BIGINT, "b" DATE), "x" VARCHAR)'
    """
    inside: dict[str, dict[str, str]] = {}
    for name, kind in fields.items():
        first, _, rest = name.partition(".")
        inside.setdefault(first, {})[rest] = kind
    parts = (f'"{name}" {of[""] if "" in of else struct_type(of)}' for name, of in inside.items())
    return f"STRUCT({', '.join(parts)})"


class ProcessorSpec(Spec):
    """A processor, without what its SQL says."""

    name: Name | None = None
    """None: that of the file."""
    processor_id: Name | None = None
    """Names the processor's state, markers and consumer group; None: the name."""
    application_id: Filled | None = None
    """A consumer group that has read the topics before; None: the processor has one of its own."""
    sql: Filled | None = None
    """None: it stands in a file of the same name that ends in `.processor.sql`."""
    runners: int | None = Field(default=None, gt=0, le=256)
    """How many tasks share the work."""
    description: str | None = None
    owners: tuple[Filled, ...] = ()
    group: GroupName | None = None
    strict_nulls: Strictness = "on"
    """Whether an expression that can be NULL may stand where Lenses takes none."""
    topics: dict[str, TopicSchemaSpec] = Field(default={})


SHAPE = Shape(noun="key", later={})
