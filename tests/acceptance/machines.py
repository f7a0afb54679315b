# pyright: basic
"""Machines that run pipelines with checkpoints in a bucket, and are lost."""

import shutil
from dataclasses import replace
from pathlib import Path

from click.testing import CliRunner

from kaflow_engine.cli.main import kaflow
from kaflow_engine.connectors.kafka.run_log.control import ControlTopic
from kaflow_engine.runtime.takeover.restore import checkpoints_of
from tests.acceptance.crash_here import config_of
from tests.acceptance.crash_pipeline import create_outputs, delivered, log_of

MOST = 40
"""Records of a batch: small batches, so that there are many."""


class Machines:
    """Runs pipelines on machines that are lost."""

    def __init__(self, broker, forks, path):
        self.broker, self.forks, self.path = broker, forks, path

    def run(self, orders):
        return self.forks.run(orders)

    def lose(self, order):
        shutil.rmtree(Path(order.path) / order.name)

    def ahead(self, order):
        """By how many batches the sink is ahead of the newest checkpoint."""
        s3 = config_of(order).state.rocksdb.checkpoint.s3
        found = checkpoints_of(s3, order.name).head()
        newest = found[0].checkpoints[0].batch if found and found[0].checkpoints else 0
        markers = ControlTopic(self.broker.settings, order.name)._view().markers
        return max((marker.batch for marker in markers.values()), default=0) - newest

    def delivered(self, order):
        return delivered(self.broker.settings, order.name, log_of(Path(order.path), order.name))


def half(machines, small, name, at="before_batch:7", **more):
    """A pipeline that was killed half way, with checkpoints."""
    order = replace(small, name=name, **more)
    create_outputs(machines.broker.settings, name)
    (killed,) = machines.run([replace(order, crash_at=at)])
    assert (killed.how, killed.said) == ("killed", "")
    return order


def listed(order):
    found = checkpoints_of(config_of(order).state.rocksdb.checkpoint.s3, order.name).head()
    return found[0]


def command(machines, order, *arguments):
    """Run `kaflow state …` with the configuration of a run."""
    s3 = config_of(order).state.rocksdb.checkpoint.s3.model_dump(by_alias=True, exclude_none=True)
    settings = {
        "kafka.brokers": order.broker,
        "state.rocksdb.path": order.path,
        **{f"state.rocksdb.checkpoint.s3.{key}": value for key, value in s3.items()},
    }
    flags = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    return CliRunner().invoke(kaflow, ["state", *arguments, *flags])
