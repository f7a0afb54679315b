"""The columns that records say with what they do to rows."""

from kaflow_engine.model.record_columns import HEADERS, KEY, NULL_VALUE
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.tables.keys import TableKeys
from kaflow_engine.sql.shape import SourceShape
from kaflow_engine.sql.tables.operations import COLUMN, HEADER


def columns_beside(spec: PipelineSpec, source: SourceShape, keys: TableKeys) -> frozenset[str]:
    """Return the columns that a table reads of its topic, whatever a query selects."""
    said = spec.read_as(source.topic, source.reading).operation or ""
    own = {said.removeprefix(COLUMN)} if said.startswith(COLUMN) else set[str]()
    headers = {HEADERS} if said.startswith(HEADER) else set[str]()
    headers |= {NULL_VALUE.name} if source.changes else set[str]()
    return frozenset({*(keys(source) or ()), KEY} | own | headers)
