"""Runs in Airflow's environment: `dag.test()` of DAG files, and what became of their tasks."""
# pyright: basic

import json
import os
import runpy
import sys
from datetime import UTC, datetime
from pathlib import Path


def run(file):
    """Run the DAG of a file; return what became of each task."""
    dag = runpy.run_path(str(file))["dag"]
    done = dag.test(logical_date=datetime(2026, 1, 2, 2, tzinfo=UTC))
    return {
        found.task_id: {
            "state": str(found.state),
            "returned": found.xcom_pull(task_ids=found.task_id),
        }
        for found in done.get_task_instances()
    }


if __name__ == "__main__":
    home = Path(os.environ["AIRFLOW_HOME"])
    stubs = runpy.run_path(str(Path(__file__).parents[2] / "stubs.py"))
    wrong = {str(stub): stubs["wrong_in"](stub) for stub in stubs["stubs_of"]("airflow")}
    (home / "stubs.json").write_text(json.dumps(wrong))
    for name in sys.argv[1:]:
        found = run(home / "dags" / f"{name}.py")
        (home / f"{name}.json").write_text(json.dumps(found))
