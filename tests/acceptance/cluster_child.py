"""Runs a pipeline on one master after the other, in a process of its own that has one JVM."""
# pyright: basic

import json
import sys
from dataclasses import replace
from functools import partial

from kaflow_engine.model.config import Config
from kaflow_engine.runtime import pipeline
from kaflow_engine.runtime.application import run_pipelines
from kaflow_engine.runtime.batch.runner import BatchRunner
from kaflow_engine.runtime.spark.jars import spark_kafka_jars
from kaflow_engine.runtime.spark.java import find_java
from kaflow_engine.runtime.spark.session import start_session
from tests.acceptance.crash_pipeline import crash_plan

PARTITIONS = 3
DONE = "done"


def main():
    """Run what each line of stdin asks for, and say when it is done."""
    # small batches, but with all the exchanges of large ones
    pipeline.BatchRunner = partial(BatchRunner, small=-1)
    session = known = None
    for line in sys.stdin:
        name, asked = json.loads(line)
        config = Config.model_validate(asked)
        if config.spark != known:
            if session is not None:
                session.stop()
            session = start_session(config.spark, find_java(), spark_kafka_jars())
            known = config.spark
        plan = replace(crash_plan(name, "in"), partitions=PARTITIONS)
        run_pipelines([plan], config, until_caught_up=True, spark=session)
        sys.stdout.write(f"{DONE}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
