# pyright: basic
"""What happens to checkpoints, to their bucket, and to machines that share them."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

from kaflow_engine.connectors.kafka.client import open_admin
from kaflow_engine.errors import SinkError, SourceError, StateError
from tests.acceptance.crash_pipeline import create_outputs, load_topics, log_of
from tests.acceptance.machines import command, half, listed

pytestmark = [pytest.mark.kafka, pytest.mark.services]


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
