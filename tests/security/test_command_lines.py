"""What `ps` shows of a run: none of its secrets."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from kaflow_engine.model.config import SparkConfig
from kaflow_engine.runtime.spark.java import find_java
from kaflow_engine.runtime.spark.session import start_session
from kaflow_engine.testing.services.processes import Processes
from tests.conftest import SHORT_LIVED

KEY = "S3/Key+7711 with=signs\\ and é"
STORE = "Trust-5520-store"
CONF = {
    "spark.hadoop.fs.s3a.secret.key": KEY,
    "spark.driver.memory": "600m",
    "spark.driver.extraJavaOptions": f'{SHORT_LIVED} -Dtrust.password={STORE} -Dtwo.words="a b"',
}


def everything_below(pid: int) -> list[str]:
    found = [Path(f"/proc/{pid}/cmdline").read_text()]
    for child in Processes().children(pid):
        found += everything_below(child)
    return found


@pytest.mark.spark
def test_no_secret_of_spark_stands_on_a_command_line(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "tests.security.test_command_lines"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(done.stdout.splitlines()[-1])
    assert any("java" in line for line in told["commands"])
    for secret in (KEY, "7711", STORE):
        assert [line for line in told["commands"] if secret in line] == []
    assert told["conf"] == told["hadoop"] == KEY
    assert told["properties"] == [STORE, "a b"]
    assert 500 * 2**20 < told["heap"] <= 600 * 2**20
    assert told["left"] == []  # neither files nor the arguments that name them
    assert told["arguments"] is None


def main() -> None:
    """Start Spark, and print what can be seen of it."""
    spark = start_session(SparkConfig(conf=CONF), find_java(), ())
    context, jvm = spark.sparkContext, spark.sparkContext._jvm
    told = {
        "commands": everything_below(os.getpid()),
        "conf": context.getConf().get("spark.hadoop.fs.s3a.secret.key"),
        "hadoop": context._jsc.hadoopConfiguration().get("fs.s3a.secret.key"),
        "properties": [jvm.System.getProperty(name) for name in ("trust.password", "two.words")],
        "heap": jvm.Runtime.getRuntime().maxMemory(),
        "left": [str(path) for path in Path(tempfile.gettempdir()).rglob("kaflow-spark-*")],
        "arguments": os.environ.get("PYSPARK_SUBMIT_ARGS"),
    }
    spark.stop()
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main()
