"""Runs one pipeline in a process of its own, so that a test can kill it."""

import json
import sys

from kaflow_engine.model.config import Config
from kaflow_engine.runtime.application import run_pipelines
from tests.engine.runtime.plans_here import lookup_plan


def config(broker: str, path: str, most: int = 400_000) -> Config:
    """A configuration for two tasks at a time."""
    return Config.model_validate(
        {
            "kafka": {"brokers": broker},
            "state": {"rocksdb": {"path": path}},
            "max_records": most,
            # starts a JVM that lives for seconds in half the CPU time
            "spark": {"conf": {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}},
        }
    )


def main(broker: str, path: str, name: str, most: str) -> None:
    """Run until caught up and print the counters."""
    topics = (f"{name}.{topic}" for topic in ("events", "profiles", "out"))
    plan = lookup_plan(name, *topics, smart=True)
    summary = run_pipelines([plan], config(broker, path, int(most)), until_caught_up=True)
    sys.stdout.write(json.dumps(dict(summary.pipelines[name].counters)))


if __name__ == "__main__":
    main(*sys.argv[1:])
