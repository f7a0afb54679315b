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
from kaflow_engine.plan.planner.project import load_checked
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
        spec: The pipeline; or a file, which goes on for what comes later, or a folder.
        config: Its configuration.
        wanted: The range of a backfill; None: the stream, until it has caught up.
        packages: Folders of packages that are installed for it.
    """
    done = _run(spec, config, wanted, packages, {VARIABLE: f"{point}:{batch}"})
    assert done.returncode == -signal.SIGKILL, (point, batch, done.stderr[-3000:])


def ran(spec, config, packages=()):
    """Run a pipeline, or all of a folder, until it has caught up; return what it printed."""
    done = _run(spec, config, None, packages, {})
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def _run(spec, config, wanted, packages, environment):
    in_files = isinstance(spec, Path)
    given = {
        "files": str(spec) if in_files else None,
        "spec": None
        if in_files
        else spec.model_dump(mode="json", by_alias=True, exclude_unset=True),
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
    if asked["files"] is None:
        specs = [PipelineSpec.model_validate(asked["spec"])]
    else:
        specs = load_checked([Path(asked["files"])], config, {}).pipelines
    plans = [each.plan for each in prepare(specs, config)]
    if asked["range"] is None:
        ends = asked["files"] is None or Path(asked["files"]).is_dir()
        run_pipelines(plans, config, until_caught_up=ends)
    else:
        (plan,) = plans
        start, end, force = asked["range"]
        run_backfill(plan, config, Backfill(start=start, end=end, force=force))


if __name__ == "__main__":
    main()
