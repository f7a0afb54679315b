"""Runs a pipeline on Spark until it has caught up, in a process of its own that can be killed."""

import sys
from pathlib import Path

from kaflow_engine.model.config import Config
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.runtime.application import run_pipelines
from kaflow_engine.runtime.prepare import prepare
from tests.conftest import SHORT_LIVED


def main(spec: str, config: str) -> None:
    """Run the pipeline of a JSON file."""
    found = Config.model_validate_json(config)
    java = {"spark.driver.extraJavaOptions": SHORT_LIVED}
    found = found.model_copy(update={"spark": found.spark.model_copy(update={"conf": java})})
    (planned,) = prepare([PipelineSpec.model_validate_json(Path(spec).read_text())], found)
    run_pipelines([planned.plan], found, until_caught_up=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
