"""What a pipeline will do, as data and as a drawing; nothing runs, no broker is asked."""

from typing import TYPE_CHECKING

from kaflow_engine.api.lazy import lazily

if TYPE_CHECKING:
    from kaflow_engine.flow.flow import Backfill, Flow
    from kaflow_engine.model.columns import Column
    from kaflow_engine.operators.rows.table_rows import partition_of
    from kaflow_engine.plan.explain.draw import draw
    from kaflow_engine.plan.explain.explain import Resolver, explain
    from kaflow_engine.plan.explain.explanation import (
        Explanation,
        LineagePart,
        OutputPart,
        SidePart,
        SinkPart,
        StepPart,
        TablePart,
    )
    from kaflow_engine.plan.explain.topic_part import SourcePart, TopicPart
else:
    __getattr__ = lazily(__name__)

__all__ = [
    "Backfill",
    "Column",
    "Explanation",
    "Flow",
    "LineagePart",
    "OutputPart",
    "Resolver",
    "SidePart",
    "SinkPart",
    "SourcePart",
    "StepPart",
    "TablePart",
    "TopicPart",
    "draw",
    "explain",
    "partition_of",
]
