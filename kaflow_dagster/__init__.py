"""The engine in Dagster: translation only."""

from kaflow_dagster.build import build_kaflow_defs as build_kaflow_defs
from kaflow_dagster.component import KaflowProjectComponent as KaflowProjectComponent
from kaflow_dagster.translator import KaflowTranslator as KaflowTranslator
from kaflow_dagster.translator import StreamProps as StreamProps
from kaflow_dagster.translator import TopicProps as TopicProps
