"""The engine in Dagster: translation only."""

from kaflow_dagster.assets.props import (
    Props,
    SinkProps,
    SourceProps,
    StreamProps,
    TableProps,
    TopicProps,
)
from kaflow_dagster.assets.translator import KaflowTranslator
from kaflow_dagster.build import build_kaflow_defs
from kaflow_dagster.component import KaflowProjectComponent

__all__ = [
    "KaflowProjectComponent",
    "KaflowTranslator",
    "Props",
    "SinkProps",
    "SourceProps",
    "StreamProps",
    "TableProps",
    "TopicProps",
    "build_kaflow_defs",
]
