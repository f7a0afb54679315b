"""The pipeline that a case names: found, loaded and planned."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.configuration.load_config import load_config
from kaflow_engine.model.configuration.preprocessors import rewriter
from kaflow_engine.model.configuration.shared_topics import shared_topics
from kaflow_engine.model.files.streamling_files import JSON, is_streamling, may_be_streamling
from kaflow_engine.model.files.tree import Entries, Scalar, describe
from kaflow_engine.model.files.variables import variables_of_authors
from kaflow_engine.model.files.yaml_file import raise_all, read_yaml
from kaflow_engine.model.lenses.front_end import SQL as PROCESSOR_SQL
from kaflow_engine.model.lenses.front_end import YAML as PROCESSOR_YAML
from kaflow_engine.model.lenses.front_end import (
    is_processor,
    load_processor,
    processor_from_mapping,
)
from kaflow_engine.model.pipelines.front_end import SUFFIXES
from kaflow_engine.model.pipelines.loader import load_pipeline, pipeline_from_mapping
from kaflow_engine.model.project import FOLDERS
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.model.streamling.front_end import load_streamling, streamling_from_mapping
from kaflow_engine.plan.planner.functions import function_kind, use_functions
from kaflow_engine.plan.planner.pipeline_plan import build_plan, declared_columns
from kaflow_engine.plan.planner.planned import PlannedPipeline
from kaflow_engine.plan.planner.project import load_one
from kaflow_engine.sql.pipeline import pipeline_topics
from kaflow_engine.sql.scope import NeedsSchema
from kaflow_engine.sql.types.bind import check_types, normal_type
from kaflow_engine.testing.cases.specs import Case
from kaflow_engine.testing.local.shown import as_topic

CASE = "case"
"""What a topology is called that stands in a case, and has no name of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Where cases look for pipelines and settings."""

    project: Path | None = None
    """Folder of the pipelines; None: the nearest one upwards that holds some."""
    config_path: Path | None = None
    variables: Mapping[str, str] | None = None
    """For configuration and pipelines; None: the environment, as far as each may expand it."""


def plan_case(case: Case, around: Surroundings) -> PlannedPipeline:
    """Plan the pipeline of a case, for a stream that is fed in the order of the case.

    Raises:
        ModelError: It cannot be found or loaded, or is wrong.
    """
    base = load_config(around.config_path, around.variables)
    spec = _spec(case, around, base)
    config = base
    if case.config is not None:
        config = load_config(around.config_path, around.variables, case.config)
    if config.functions != base.functions:
        hint = "name them in the configuration, as a case is text and text runs no code"
        raise ModelError("a case cannot name functions", Location(config.origin("functions")), hint)
    if config.preprocessors != base.preprocessors:
        hint = "name them in the configuration: a case is text, and text runs no code"
        at = Location(config.origin("preprocessors"))
        raise ModelError("a case cannot name preprocessors", at, hint)
    schemas = _schemas(case, spec)
    planned = build_plan(spec, config, schemas)
    sinks = tuple(as_topic(sink) for sink in planned.plan.sinks)
    return replace(planned, plan=replace(planned.plan, sinks=sinks, dimensions_first=False))


def _spec(case: Case, around: Surroundings, config: Config) -> PipelineSpec:
    """Load the pipeline with the configuration around the case, which cannot allow itself more."""
    node, here = case.pipeline, Path(case.at.file).parent
    known = around.variables
    if known is None:
        known = variables_of_authors(config.env, config.file)
    match node:
        case Entries() if is_processor(node):
            use_functions(config)
            return processor_from_mapping(node, function_kind, shared_topics(config))
        case Entries() if is_streamling(node):
            return streamling_from_mapping(node, CASE, config.vars)
        case Entries():
            return pipeline_from_mapping(node, node.at, known)
        case Scalar(text=str(text)) if text.endswith((PROCESSOR_SQL, *PROCESSOR_YAML)):
            use_functions(config)
            return load_processor(here / text, known, function_kind, shared_topics(config))
        case Scalar(text=str(text)) if text.endswith((*SUFFIXES, JSON)):
            if _is_topology(here / text):
                return load_streamling(here / text, known, rewriter(config), config.vars)
            return load_pipeline(here / text, known, rewriter(config))
        case Scalar(text=str(text)):
            folders = [around.project] if around.project else _nearest(here)
            # Errors show where a file is from here.
            paths = [Path(os.path.relpath(folder)) for folder in folders]
            return load_one(paths, text, config, known, node.at)
        case _:
            hint = "write a name, a path that ends in .yaml, or a mapping"
            raise ModelError(f"expected a pipeline, found {describe(node)}", node.at, hint)


def _schemas(case: Case, spec: PipelineSpec) -> dict[str, tuple[Column, ...]]:
    start = spec.place("query")
    wrong: list[ModelError] = []
    found: dict[str, tuple[Column, ...]] = {}
    topics = pipeline_topics(spec)
    for topic in topics:
        declared = declared_columns(spec, topic)
        types = case.spec.topics.get(topic)
        if declared is not None:
            found[topic] = declared
        elif types is not None:
            try:
                found[topic] = tuple(Column(name, normal_type(of)) for name, of in types.items())
            except duckdb.Error:
                places = {name: case.topics_at[(topic, name)] for name in types}
                wrong += check_types(types, places)
    raise_all(wrong)
    if unknown := [topic for topic in topics if topic not in found]:
        message = NeedsSchema(unknown, start).message
        raise ModelError(message, start, "declare them there, or in the case under topics:")
    return found


def _nearest(folder: Path) -> list[Path]:
    here = folder.resolve()
    for parent in (here, *here.parents):
        if found := [parent / name for name in FOLDERS if (parent / name).is_dir()]:
            return found
        if any(_holds_pipeline(file) for file in sorted(parent.iterdir())):
            return [parent]
        if (parent / ".git").exists():
            return []
    return []


def _is_topology(file: Path) -> bool:
    try:
        return is_streamling(read_yaml(file, {}).root)
    except ModelError:
        return False  # reading it as a pipeline file reports that


def _holds_pipeline(file: Path) -> bool:
    if file.name.endswith((PROCESSOR_SQL, *PROCESSOR_YAML)):
        return True
    if not file.name.endswith((*SUFFIXES, JSON)):
        return False
    if file.suffix == JSON and not may_be_streamling(file):
        return False
    try:
        root = read_yaml(file, {}).root
    except ModelError:
        return False  # whoever runs that pipeline is told
    if not isinstance(root, Entries):
        return False
    return is_streamling(root) or bool({"query", "outputs"} & {e.key for e in root.entries})
