"""Runs the pipeline of `crash_pipeline` on Spark, in a process of its own that can be killed."""

import json
import sys

from kaflow_engine.model.config import Config
from kaflow_engine.runtime.application import run_pipelines
from tests.acceptance.crash_pipeline import crash_plan
from tests.conftest import SHORT_LIVED

MOST = 120
"""Records of a batch: as long as it is the same, so are the cuts."""


def config(broker: str, path: str) -> Config:
    """Configure two tasks at a time, and a snapshot every few seconds."""
    return Config.model_validate(
        {
            "kafka": {"brokers": broker},
            "state": {"rocksdb": {"path": path, "checkpoint": {"interval": "4s"}}},
            "max_records": MOST,
            "spark": {"conf": {"spark.driver.extraJavaOptions": SHORT_LIVED}},
        }
    )


def main(broker: str, path: str, name: str, inputs: str) -> None:
    """Run until caught up and print the counters."""
    plan = crash_plan(name, inputs)
    summary = run_pipelines([plan], config(broker, path), until_caught_up=True)
    sys.stdout.write(json.dumps(dict(summary.pipelines[name].counters)))


if __name__ == "__main__":
    main(*sys.argv[1:])
