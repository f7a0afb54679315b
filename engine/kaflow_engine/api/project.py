"""Files of a project: its configuration and its pipelines, read and checked."""

from typing import TYPE_CHECKING

from kaflow_engine.api.lazy import lazily

if TYPE_CHECKING:
    from kaflow_engine.model.checks import Check, checks_of
    from kaflow_engine.model.config import Config
    from kaflow_engine.model.configuration.load_config import load_config
    from kaflow_engine.model.configuration.with_brought import with_brought
    from kaflow_engine.model.outputs.output_specs import Write
    from kaflow_engine.model.project import FOLDERS, Project
    from kaflow_engine.model.specs import PipelineSpec
    from kaflow_engine.plan.planner.project import CheckedPipeline, CheckedProject, check_project
    from kaflow_engine.plan.planner.project import load_checked as load_project
    from kaflow_engine.plan.planner.project import load_one as load_pipeline
else:
    __getattr__ = lazily(__name__)

__all__ = [
    "FOLDERS",
    "Check",
    "CheckedPipeline",
    "CheckedProject",
    "Config",
    "PipelineSpec",
    "Project",
    "Write",
    "check_project",
    "checks_of",
    "load_config",
    "load_pipeline",
    "load_project",
    "with_brought",
]
