"""Runs a pipeline, its stream or a backfill, in a process of its own that can be killed."""
# pyright: basic

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from kaflow_engine.flow.flow import Backfill
from kaflow_engine.model.config import Config
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.runtime.application import run_backfill, run_pipelines
from kaflow_engine.runtime.planning.prepare import prepare
from kaflow_engine.runtime.tasks.crash import VARIABLE
from tests.conftest import SHORT_LIVED

ROOT = Path(__file__).parents[2]


def killed_at(point, batch, spec, config, wanted=None, packages=()):
    """Run a pipeline until it is killed at a crash point of a batch.

    Args:
        point: Where.
        batch: Of which batch.
        spec: The pipeline.
        config: Its configuration.
        wanted: The range of a backfill; None: the stream, until it has caught up.
        packages: Folders of packages that are installed for it.
    """
    done = _run(spec, config, wanted, packages, {VARIABLE: f"{point}:{batch}"})
    assert done.returncode == -signal.SIGKILL, (point, batch, done.stderr[-3000:])


def ran(spec, config, packages=()):
    """Run a pipeline until it has caught up."""
    done = _run(spec, config, None, packages, {})
    assert done.returncode == 0, done.stderr[-3000:]


def _run(spec, config, wanted, packages, environment):
    given = {
        "spec": spec.model_dump(mode="json", by_alias=True, exclude_unset=True),
        "config": config.model_dump(mode="json", by_alias=True, exclude_unset=True),
        "range": [wanted.start, wanted.end, wanted.force] if wanted else None,
    }
    path = os.pathsep.join(map(str, [ROOT, ROOT / "engine", *packages]))
    return subprocess.run(
        [sys.executable, "-m", "tests.acceptance.run_child"],
        input=json.dumps(given),
        env={**os.environ, "PYTHONPATH": path, **environment},
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )


def main():
    """Run what is asked on stdin."""
    asked = json.load(sys.stdin)
    config = Config.model_validate(asked["config"])
    java = {"spark.driver.extraJavaOptions": SHORT_LIVED}
    config = config.model_copy(update={"spark": config.spark.model_copy(update={"conf": java})})
    (planned,) = prepare([PipelineSpec.model_validate(asked["spec"])], config)
    if asked["range"] is None:
        run_pipelines([planned.plan], config, until_caught_up=True)
    else:
        start, end, force = asked["range"]
        run_backfill(planned.plan, config, Backfill(start=start, end=end, force=force))


if __name__ == "__main__":
    main()
