"""Runs the pipeline of `crash_pipeline` on Spark, in a process of its own that can be killed.

Twice, side by side: into a topic, and into a table. So each kill hits both.
"""

import json
import sys

from kaflow_engine.flow.flow import Flow
from kaflow_engine.model.config import Config
from kaflow_engine.runtime import restart_policy
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
            "warehouse": f"{path}/warehouse",
            "spark": {"conf": {"spark.driver.extraJavaOptions": SHORT_LIVED}},
        }
    )


def plans(name: str, inputs: str, path: str) -> dict[str, Flow]:
    """Plan both pipelines; by kind of output."""
    return {
        "topic": crash_plan(name, inputs),
        "table": crash_plan(
            f"{name}-table", inputs, warehouse=f"{path}/warehouse", on_error="dead_letter"
        ),
    }


def main(broker: str, path: str, name: str, inputs: str) -> None:
    """Run until caught up and print the counters."""
    restart_policy._BACKOFF_S = 0.1  # pyright: ignore[reportPrivateUsage]  # of hundreds of kills
    both = list(plans(name, inputs, path).values())
    summary = run_pipelines(both, config(broker, path), until_caught_up=True)
    counters = {each: dict(found.counters) for each, found in summary.pipelines.items()}
    sys.stdout.write(json.dumps(counters))


if __name__ == "__main__":
    main(*sys.argv[1:])
