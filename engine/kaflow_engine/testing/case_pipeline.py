"""The pipeline that a case names: found, loaded and planned."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import duckdb

from kaflow_engine.errors import ModelError, UnknownName
from kaflow_engine.model.columns import Column
from kaflow_engine.model.load_config import load_config
from kaflow_engine.model.loader import load_pipeline, pipeline_from_mapping
from kaflow_engine.model.project import SUFFIXES
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.model.tree import Entries, Scalar, describe
from kaflow_engine.model.variables import read_environment
from kaflow_engine.model.yaml_file import raise_all, read_yaml
from kaflow_engine.plan.build import build_plan, declared_columns
from kaflow_engine.plan.pipeline import PlannedPipeline
from kaflow_engine.sql.bind import check_types, normal_type
from kaflow_engine.sql.read import topics_of
from kaflow_engine.sql.scope import NeedsSchema
from kaflow_engine.testing.case_specs import Case

FOLDER = "pipelines"
"""Where a project keeps its pipelines; they may also stand beside its configuration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Where cases look for pipelines and settings."""

    project: Path | None = None
    """Folder of the pipelines; None: the nearest one upwards that holds some."""
    config_path: Path | None = None
    variables: Mapping[str, str] = field(default_factory=read_environment)


def plan_case(case: Case, around: Surroundings) -> PlannedPipeline:
    """Plan the pipeline of a case, for a stream that is fed in the order of the case.

    Raises:
        ModelError: It cannot be found or loaded, or is wrong.
    """
    spec = _spec(case, around)
    config = load_config(around.config_path, around.variables, case.config)
    schemas = _schemas(case, spec)
    planned = build_plan(spec, config, schemas)
    return replace(planned, plan=replace(planned.plan, dimensions_first=False))


def _spec(case: Case, around: Surroundings) -> PipelineSpec:
    node, here = case.pipeline, Path(case.at.file).parent
    match node:
        case Entries():
            return pipeline_from_mapping(node, node.at, around.variables)
        case Scalar(text=str(text)) if text.endswith(SUFFIXES):
            return load_pipeline(here / text, around.variables)
        case Scalar(text=str(text)):
            folder = around.project or _nearest(here)
            # Errors show where a file is from here.
            files = _pipelines_of(Path(os.path.relpath(folder)), around.variables) if folder else {}
            if text not in files:
                raise UnknownName("pipeline", text, files, node.at)
            return load_pipeline(files[text], around.variables)
        case _:
            hint = "write a name, a path that ends in .yaml, or a mapping"
            raise ModelError(f"expected a pipeline, found {describe(node)}", node.at, hint)


def _schemas(case: Case, spec: PipelineSpec) -> dict[str, tuple[Column, ...]]:
    start = spec.place("query")
    wrong: list[ModelError] = []
    found: dict[str, tuple[Column, ...]] = {}
    topics = topics_of(spec.query, start)
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


def _nearest(folder: Path) -> Path | None:
    here = folder.resolve()
    for parent in (here, *here.parents):
        if (parent / FOLDER).is_dir():
            return parent / FOLDER
        if any(_name_of(file, {}) for file in _yaml(parent, deep=False)):
            return parent
        if (parent / ".git").exists():
            return None
    return None


def _pipelines_of(folder: Path, variables: Mapping[str, str]) -> dict[str, Path]:
    named = ((_name_of(file, variables), file) for file in _yaml(folder, deep=True))
    return {name: file for name, file in named if name is not None}


def _yaml(folder: Path, deep: bool) -> list[Path]:
    pattern = "**/*" if deep else "*"
    return sorted(file for file in folder.glob(pattern) if file.name.endswith(SUFFIXES))


def _name_of(file: Path, variables: Mapping[str, str]) -> str | None:
    """Return the name of the pipeline in a file; None where there is none, right or wrong."""
    try:
        root = read_yaml(file, variables).root
    except ModelError:
        return None  # whoever runs that pipeline is told
    if not isinstance(root, Entries) or root.get("query") is None:
        return None
    name = root.get("name")
    return name.text if isinstance(name, Scalar) else None
