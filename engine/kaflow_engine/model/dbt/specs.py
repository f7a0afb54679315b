"""What a property file says, as frozen data: sources, and what there is to know about models."""

from pydantic import Field

from kaflow_engine.model.files.shapes import Shape
from kaflow_engine.model.names import Filled, Topic
from kaflow_engine.model.outputs.output_specs import ColumnSpec
from kaflow_engine.model.sources.topic_specs import TopicSpec
from kaflow_engine.model.spec import Spec


class PropertyColumn(ColumnSpec):
    """A column of a source's table or of a model."""

    name: Filled
    data_tests: tuple[object, ...] = ()
    """Checks of this column, as dbt writes them."""


class SourceConfig(TopicSpec):
    """How the topic behind a table is read."""

    dimension: bool = False
    """Whether its last record of each key is kept for ever."""


class TableSpec(Spec):
    """A table of a source: a topic."""

    name: Filled
    description: str | None = None
    identifier: Topic | None = None
    """The topic; None: called as the table is."""
    config: SourceConfig = SourceConfig()
    columns: tuple[PropertyColumn, ...] = ()


class SourceSpec(Spec):
    """Tables that belong together."""

    name: Filled
    description: str | None = None
    tables: tuple[TableSpec, ...] = ()


class ModelProperties(Spec):
    """What a property file says about a model."""

    name: Filled
    description: str | None = None
    config: dict[str, object] = Field(default={})
    """Keys of a pipeline file; what stands in the model's own `config` goes over it."""
    columns: tuple[PropertyColumn, ...] = ()
    meta: dict[str, object] = Field(default={})
    data_tests: tuple[object, ...] = ()
    """Checks of whole rows."""


class Properties(Spec):
    """One property file."""

    version: int | None = None
    """dbt's version of this format."""
    models: tuple[ModelProperties, ...] = ()
    sources: tuple[SourceSpec, ...] = ()
    unit_tests: tuple[object, ...] = ()
    """Read where tests are run."""


SHAPE = Shape(
    noun="key",
    later={
        TableSpec: frozenset({"tests", "data_tests"}),
    },
)
