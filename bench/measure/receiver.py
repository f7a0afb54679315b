"""The receiver of a webhook without its pipeline, until its input is closed:
`python -m bench.measure.receiver FILE FOLDER`."""

import sys
from pathlib import Path

from kaflow_engine.connectors.journal.receivers import receiving
from kaflow_engine.plan.planner.project import load_checked
from kaflow_engine.runtime.planning.prepare import plan_pipeline

if __name__ == "__main__":
    project = load_checked([Path(sys.argv[1])], variables={})
    planned = plan_pipeline(project.pipelines[0], project.config)
    with receiving(planned.plan, Path(sys.argv[2]), {}, 0):
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.read()
