"""A cluster with a secret: who has it runs tasks there, who has it not gets no answer."""

import json
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from kaflow_engine.model.config import SparkConfig
from kaflow_engine.runtime.spark.cluster import addresses
from kaflow_engine.runtime.spark.java import find_java
from kaflow_engine.runtime.spark.session import start_session
from kaflow_engine.testing.services.cluster import Cluster
from kaflow_engine.testing.services.processes import Processes
from tests.conftest import SHORT_LIVED

pytestmark = [pytest.mark.spark, pytest.mark.services]

ROOT = Path(__file__).parents[2]
SECRET = "Cluster-5511-secret"
PROTECTION = {
    "spark.authenticate": "true",
    "spark.authenticate.secret": SECRET,
    "spark.network.crypto.enabled": "true",
    "spark.network.crypto.cipher": "AES/GCM/NoPadding",
}


@pytest.fixture(scope="module")
def cluster():
    """A master and a worker."""
    with Cluster(conf=PROTECTION) as running:
        yield running


def commands_below(pid):
    found = [Path(f"/proc/{pid}/cmdline").read_text()]
    return found + [line for child in Processes().children(pid) for line in commands_below(child)]


def test_who_has_the_secret_runs_tasks_and_shows_it_nowhere(cluster):
    done = subprocess.run(
        [sys.executable, "-m", "tests.acceptance.test_cluster_secret", cluster.url],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "SPARK_LOCAL_IP": "127.0.0.1"},
        cwd=ROOT,
        input=json.dumps(cluster.workers),
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["sum"] == sum(range(100))
    assert [line for line in told["commands"] if SECRET in line] == []
    assert [line for line in told["commands"] if "CoarseGrainedExecutorBackend" in line]
    assert SECRET not in done.stderr


def test_who_has_it_not_is_refused_before_anything_is_read(cluster):
    """A request without the secret; Spark reads it as objects of Java where there is none."""
    host, port = addresses(cluster.url)[0]
    body = b"not an object"
    request = bytes([3]) + struct.pack(">qi", 7, len(body)) + body
    with socket.create_connection((host, port)) as stranger:
        stranger.sendall(struct.pack(">q", len(request) + 8) + request)
        answer = stranger.makefile("rb").read(200)
    assert b"Expected SaslMessage, received something else" in answer


def main() -> None:
    """Run tasks, and print their result and what can be seen of all processes."""
    conf = {
        **PROTECTION,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": SHORT_LIVED,
        "spark.executor.extraJavaOptions": SHORT_LIVED,
        "spark.executor.memory": "512m",
    }
    spark = start_session(SparkConfig(master=sys.argv[1], conf=conf), find_java(), ())
    workers = json.loads(sys.stdin.read())
    found = spark.sparkContext.parallelize(range(100), 2).map(int).sum()
    commands = [line for pid in (os.getpid(), *workers) for line in commands_below(pid)]
    spark.stop()
    sys.stdout.write(json.dumps({"sum": found, "commands": commands}))


if __name__ == "__main__":
    main()
