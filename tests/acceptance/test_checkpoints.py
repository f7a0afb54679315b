"""Machines are lost, and others go on from the checkpoints: each row is delivered once.

Without Spark, as in `test_crash_points.py`, and with a store that speaks S3.
`KAFLOW_LOSSES_SEED` repeats the machines that were lost at random.
"""
# pyright: basic

import json
import os
import random
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka import TopicPartition

from kaflow_engine.cli.main import kaflow
from kaflow_engine.connectors.kafka_client import open_admin
from kaflow_engine.connectors.kafka_control import ControlTopic
from kaflow_engine.errors import SinkError, SourceError, StateError
from kaflow_engine.runtime.bring_back import checkpoints_of
from tests.acceptance.bucket_here import Store
from tests.acceptance.crash_here import config_of
from tests.acceptance.crash_pipeline import create_outputs, delivered, load_topics, log_of

pytestmark = [pytest.mark.kafka, pytest.mark.services]

SEED = int(os.environ.get("KAFLOW_LOSSES_SEED", random.randrange(10**6)))
LOST = 20
MOST = 40
STEPS = (
    "batch_logged",
    "mapped",
    "changes_written",
    "before_commit",
    "committed",
    "before_commit_log",
    "commit_logged",
    "snapshot_copied",
)
INTERRUPTED = (1, 2, 3, 5, 8, 11, 14, 20)
"""Writes to the bucket that succeed: of the head, of files, of a manifest, of the next head, …"""


@pytest.fixture(scope="module")
def bucket():
    with Store() as found:
        yield found


@pytest.fixture(scope="module")
def small(order, bucket):
    """Small batches, so that there are many, with a checkpoint whenever the last one is written."""
    return replace(order, most=MOST, bucket=bucket.endpoint, snapshots="1ms")


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


@pytest.fixture(scope="module")
def machines(crash_broker, forks, order):
    return Machines(crash_broker, forks, Path(order.path))


@pytest.fixture(scope="module")
def unbroken(machines, order):
    """What a run with the same cuts does, whose machine stays."""
    alone = replace(order, name="unbroken", most=MOST)
    create_outputs(machines.broker.settings, alone.name)
    (end,) = machines.run([alone])
    assert (end.how, end.said) == ("ended", "")
    return machines.delivered(alone)


@pytest.fixture(scope="module")
def lost(machines, small):
    """Runs that were killed somewhere, and whose disks are gone."""
    chance, orders = random.Random(SEED), []
    for number in range(LOST):
        name = f"lost-{number}"
        create_outputs(machines.broker.settings, name)
        at = f"{chance.choice(STEPS)}:{chance.randrange(2, 9)}"
        orders.append(replace(small, name=name, crash_at=at))
    killed = machines.run(orders)
    ahead = [machines.ahead(each) for each in orders]
    for each in orders:
        machines.lose(each)
    calm = [replace(each, crash_at="") for each in orders]
    return list(zip(calm, killed, ahead, machines.run(calm), strict=True))


def test_the_sink_was_ahead_of_most_checkpoints(lost):
    sys.stdout.write(f"KAFLOW_LOSSES_SEED={SEED}\n")
    assert sum(ahead > 0 for _, _, ahead, _ in lost) >= LOST / 2


@pytest.mark.parametrize("number", range(LOST))
def test_another_machine_goes_on(machines, unbroken, lost, number):
    sys.stdout.write(f"KAFLOW_LOSSES_SEED={SEED}\n")
    order, killed, _, last = lost[number]
    assert (killed.how, killed.said) == ("killed", "")
    assert (last.how, last.said) == ("ended", "")
    assert machines.delivered(order) == unbroken


@pytest.fixture(scope="module")
def interrupted(machines, small):
    """Runs that were killed while they wrote to the bucket, and whose disks are gone."""
    orders = [replace(small, name=f"interrupted-{writes}") for writes in INTERRUPTED]
    for each in orders:
        create_outputs(machines.broker.settings, each.name)
    killed = machines.run([replace(o, writes=w) for o, w in zip(orders, INTERRUPTED, strict=True)])
    for each in orders:
        machines.lose(each)
    return dict(
        zip(INTERRUPTED, zip(orders, killed, machines.run(orders), strict=True), strict=True)
    )


@pytest.mark.parametrize("writes", INTERRUPTED)
def test_an_upload_that_was_cut_off_does_not_count(machines, unbroken, interrupted, writes):
    order, killed, last = interrupted[writes]
    assert killed.how == "killed"
    assert (last.how, last.said) == ("ended", "")
    assert machines.delivered(order) == unbroken


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


def test_a_damaged_checkpoint_is_passed_over(machines, unbroken, small, bucket):
    order = half(machines, small, "damaged")
    newest, _ = listed(order).checkpoints
    store = bucket.bucket("t/damaged")
    content, tag = store.get(newest.manifest)
    store.put(newest.manifest, content.replace(b"sha256", b"sha257", 1), tag)
    machines.lose(order)
    (done,) = machines.run([order])
    assert (done.how, done.said) == ("ended", "")
    assert machines.delivered(order) == unbroken


def test_no_checkpoint_is_sound(machines, small, bucket):
    order = half(machines, small, "unsound")
    store = bucket.bucket("t/unsound")
    store.delete([each.manifest for each in listed(order).checkpoints])
    machines.lose(order)
    (refused,) = machines.run([order])
    assert refused.exit_code == StateError.exit_code
    assert re.search(r"'\w+/checkpoints/1-\d+-\w+\.json' of a checkpoint is missing", refused.said)


def test_the_bucket_is_away(machines, unbroken, small):
    order = half(machines, small, "away")
    nowhere = replace(order, bucket="http://127.0.0.1:9")
    (done,) = machines.run([replace(nowhere, crash_at="before_batch:8")])
    assert (done.how, done.said) == ("killed", ""), "a local state needs no bucket"
    machines.lose(order)
    (refused,) = machines.run([nowhere])
    assert refused.exit_code == StateError.exit_code
    assert "reading 'head.json' in s3://kaflow/t/away failed" in refused.said
    (done,) = machines.run([order])
    assert (done.how, done.said) == ("ended", "")
    assert machines.delivered(order) == unbroken


def test_checkpoints_are_wanted_later(machines, unbroken, small):
    order = half(machines, small, "later", at="committed:4", bucket="")
    order = replace(order, bucket=small.bucket)
    (killed,) = machines.run([replace(order, crash_at="committed:5", snapshots="1h")])
    assert killed.how == "killed"
    assert [each.batch for each in listed(order).checkpoints] == [4]
    machines.lose(order)
    (done,) = machines.run([order])
    assert (done.how, done.said) == ("ended", "")
    assert machines.delivered(order) == unbroken


def test_two_machines(machines, unbroken, small, tmp_path):
    """One sleeps while another goes on from its checkpoints, wakes up, and is started again."""
    order = replace(small, name="two")
    create_outputs(machines.broker.settings, order.name)
    file = tmp_path / "pause"
    file.write_text("snapshot_copied:6:pause")
    (asleep,) = machines.run([replace(order, crash_at=f"@{file}")])
    assert asleep.how == "stopped"
    other = replace(order, path=str(tmp_path))
    (done,) = machines.run([other])
    assert (done.how, done.said) == ("ended", "")
    head = listed(order)
    (woken,) = machines.forks.wake([asleep])
    assert woken.exit_code == SinkError.exit_code, woken
    assert "has taken over" in woken.said
    assert listed(order) == head
    assert machines.delivered(other) == unbroken
    (again,) = machines.run([order])  # its state is behind the oldest checkpoint
    assert (again.how, again.said) == ("ended", "")
    assert machines.delivered(order) == unbroken


def test_records_that_are_needed_again_are_gone(machines, small, order):
    mine = replace(small, name="gone", inputs="forgetful", snapshots="1h")
    load_topics(machines.broker.settings, "forgetful", 120)
    mine = half(machines, mine, "gone", at="committed:3", inputs="forgetful")
    machines.lose(mine)
    admin = open_admin(machines.broker.settings).api
    place = TopicPartition("forgetful.events", 0, 10)
    admin.delete_records([place])[place].result(20)
    (refused,) = machines.run([mine])
    assert refused.exit_code == SourceError.exit_code
    assert "forgetful.events" in refused.said


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


def test_checkpoints_are_listed_verified_and_restored(machines, unbroken, small, bucket):
    order = half(machines, small, "by-hand")
    newest, older = (each.batch for each in listed(order).checkpoints)
    said = command(machines, order, "checkpoints", order.name, "--verify", "--json")
    assert said.exit_code == 0, said.output
    found = json.loads(said.stdout)
    assert [(row["batch"], row["problem"]) for row in found] == [(newest, None), (older, None)]
    refused = command(machines, order, "restore", order.name)
    assert refused.exit_code == StateError.exit_code
    assert "holds a state, as it is after batch 6" in refused.output
    refused = command(machines, order, "restore", order.name, "--replace", "--at", "99")
    assert f"no checkpoint of batch 99\n  hint: there are: {newest}, {older}" in refused.output
    done = command(machines, order, "restore", order.name, "--replace", "--at", str(older))
    assert done.exit_code == 0, done.output
    assert log_of(Path(order.path), order.name).last_commit().number == older
    bucket.bucket("t/by-hand").delete([listed(order).checkpoints[0].manifest])
    damaged = command(machines, order, "checkpoints", order.name, "--verify")
    assert damaged.exit_code == StateError.exit_code
    assert "is missing or damaged" in damaged.output
    (done,) = machines.run([order])
    assert (done.how, done.said) == ("ended", "")
    assert machines.delivered(order) == unbroken


def test_a_state_that_was_dropped_does_not_come_back(machines, small):
    order = half(machines, small, "dropped")
    done = command(machines, order, "drop", order.name, "--yes")
    assert done.exit_code == 0, done.output
    none = command(machines, order, "checkpoints", order.name)
    assert "pipeline 'dropped' has no checkpoints in s3://kaflow/t/dropped" in none.output
    (again,) = machines.run([replace(order, crash_at="before_batch:2")])
    assert (again.how, again.said) == ("killed", "")


def test_a_state_is_rescaled_and_its_machine_lost(machines, unbroken, small):
    order = half(machines, small, "rescaled")
    done = command(machines, order, "rescale", order.name, "--partitions", "3")
    assert done.exit_code == 0, done.output
    behind = log_of(Path(order.path), order.name).last_commit().number
    (killed,) = machines.run([replace(order, crash_at=f"committed:{behind + 2}")])
    assert (killed.how, killed.said) == ("killed", "")
    assert listed(order).generation == 2
    machines.lose(order)
    (done,) = machines.run([order])
    assert (done.how, done.said) == ("ended", "")
    assert machines.delivered(order) == unbroken
