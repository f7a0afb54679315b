"""Relations that are dynamic tables: sets of values, which queries ask for a value."""

from typing import Literal

from pydantic import Field

from kaflow_engine.model.names import Filled
from kaflow_engine.model.spec import Spec


class DynamicTableSpec(Spec):
    """The values that a column has in another relation."""

    type: Literal["dynamic_table"]
    from_: Filled = Field(alias="from")
    """The topic, source or relation whose rows are in it; of an attached table those that the
    database has when it is asked."""
    key: Filled
    """The column."""
    description: str | None = None
    """What it is, for those who read `explain` and Dagster's page."""
