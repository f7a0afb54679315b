# pyright: basic
"""One run writes, whatever it writes to; what a sink holds is neither dropped nor written again.

Without Spark, as in `test_crash_points.py`. A story yields a run to start, or one to wake up, and
gets how it ended; the runs of all stories go side by side.
"""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from kaflow_engine.connectors.kafka_admin import delete_topics
from kaflow_engine.connectors.kafka_transactions import control_topic
from kaflow_engine.errors import SinkError, StateError
from kaflow_engine.plan.inherit import inherit
from kaflow_engine.runtime.plans import decided
from kaflow_engine.runtime.plans import plan_of as plan_of_text
from kaflow_engine.state.approval import Approval, save_approval
from tests.acceptance.crash_here import Order, plan_of
from tests.acceptance.crash_pipeline import create_outputs, delivered, log_of

pytestmark = [pytest.mark.kafka, pytest.mark.services]

MOST = 80
"""Records of a batch."""


class World:
    """What all stories share."""

    def __init__(self, broker, order, bucket, folder):
        self.kafka, self.folder = broker.settings, folder
        self.topic = replace(order, most=MOST)
        self.table = replace(self.topic, warehouse=str(folder / "warehouse"))
        self.safe = {"bucket": bucket.endpoint, "snapshots": "1ms"}
        self.peace = {}

    def named(self, order, name):
        create_outputs(self.kafka, name)
        return replace(order, name=name)

    def copy(self, order):
        """Copy the state directory of a pipeline; return the same run over the copy."""
        path = self.folder / f"copy-{order.name}"
        shutil.copytree(directory_of(order), path / order.name)
        return replace(order, path=str(path))

    def forget(self, order):
        delete_topics(self.kafka, [control_topic(order.name)])

    def rows(self, order):
        """Return the rows that a pipeline has written, sorted."""
        if order.warehouse:
            table = DeltaTable(f"{order.warehouse}/{order.name}").to_pyarrow_table()
            return sorted(json.dumps(row, default=str) for row in table.to_pylist())
        found = delivered(self.kafka, order.name, log_of(Path(order.path), order.name))
        return sorted(row for rows in found.rows.values() for row in rows)


def directory_of(order):
    return Path(order.path) / order.name


def asleep(order, at):
    """Return the same run, which stops once where `at` says."""
    file = Path(order.path) / f"{order.name}.crash"
    file.write_text(f"{at}:pause")
    return replace(order, crash_at=f"@{file}")


def take_back(order, *batches):
    for number in batches:
        for kind in ("batches", "commits"):
            (directory_of(order) / kind / f"{number}.json").unlink(missing_ok=True)
        shutil.rmtree(directory_of(order) / "changes" / str(number), ignore_errors=True)
    shutil.rmtree(directory_of(order) / "copies", ignore_errors=True)


def empty(directory, keep=("lease",)):
    for path in directory.iterdir():
        if path.name not in keep:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def killed(end):
    assert (end.how, end.said) == ("killed", ""), end


def done(end):
    assert (end.how, end.said) == ("ended", ""), end


def refused(end, said):
    assert end.exit_code == StateError.exit_code, end
    assert re.search(said, end.said, re.DOTALL), end.said


def taken_over(end):
    assert end.exit_code == SinkError.exit_code, end
    assert "has taken over" in end.said


def in_peace(world, kind):
    order = world.named(kind_of(world, kind), f"peace-{kind}")
    done((yield order))
    world.peace[kind] = world.rows(order)
    assert len(world.peace[kind]) > 200


def kind_of(world, kind):
    if kind == "at_least_once":
        return replace(world.topic, delivery=kind)
    return world.table if kind == "table" else world.topic


def taken_back(world, topic):
    """The log of a table is older than the table."""
    order = world.named(world.table, f"taken-back-{topic}")
    killed((yield replace(order, crash_at="before_batch:4")))
    backup = directory_of(world.copy(order))
    take_back(order, 3)
    before = world.rows(order)
    if topic == "lost":  # then the table alone knows
        world.forget(order)
    said = (
        rf"batch 3 of pipeline '{order.name}' was delivered to table '{order.name}', but its log "
        "ends at batch 2\n.*restore the newer state directory, or give .* and another table"
    )
    refused((yield replace(order, most=2 * MOST)), said)
    assert world.rows(order) == before
    empty(directory_of(order))
    shutil.copytree(backup, directory_of(order), dirs_exist_ok=True)
    done((yield order))
    assert world.rows(order) == world.peace["table"]


def run_again(world, point):
    order = world.named(world.table, f"again-{point}")
    killed((yield replace(order, crash_at=f"{point}:3")))
    done((yield order))
    assert world.rows(order) == world.peace["table"]


def other_batch(world):
    """The log lost a batch that the table has, and has begun another one of that number."""
    order = world.named(world.table, "other-batch")
    killed((yield replace(order, crash_at="before_batch:3")))
    elsewhere = replace(world.copy(order), warehouse=str(world.folder / "elsewhere"))
    killed((yield replace(order, crash_at="before_commit_log:3")))
    world.forget(order)
    killed((yield replace(elsewhere, most=MOST // 3, crash_at="batch_logged:3")))
    world.forget(order)  # the table alone knows
    before = world.rows(order)
    said = "table 'other-batch' holds batch 3 of this state with other records than its log"
    refused((yield replace(elsewhere, warehouse=order.warehouse, delivery="at_least_once")), said)
    assert world.rows(order) == before


def copied(world, kind, at):
    """A second run, over a copy of the state, ends the first one, wherever that one stands."""
    name = f"copied-{kind}-{at.partition(':')[0]}"
    order = world.named(kind_of(world, kind), name)
    first = yield asleep(order, at)
    assert first.how == "stopped"
    second = world.copy(order)
    done((yield second))
    taken_over((yield first))
    if kind == "at_least_once":
        assert log_of(Path(order.path), name).last_commit().number == 2
        assert set(world.rows(second)) == set(world.peace[kind])
    else:
        assert world.rows(order) == world.peace[kind]


def left_alone(world, kind):
    """Starts that are refused do not end a run that is live."""
    order = world.named(kind_of(world, kind), f"live-{kind}")
    killed((yield replace(order, crash_at="before_batch:3")))
    stale = world.copy(order)
    live = yield asleep(order, "before_batch:4")
    assert live.how == "stopped"
    stranger = replace(order, path=str(world.folder / "strangers"))
    said = rf"pipeline '{order.name}' has delivered rows \(up to batch 3\).* from state"
    refused((yield stranger), said)
    refused((yield stale), "batch 3 of .* but its log ends at batch 2\n")
    done((yield live))
    assert sorted(set(world.rows(order))) == sorted(set(world.peace[kind]))


def forked(world):
    """Both copies have a batch of that number; that of the other one was delivered."""
    order = world.named(world.topic, "forked")
    killed((yield replace(order, crash_at="before_batch:3")))
    other = replace(world.copy(order), most=MOST // 3)
    killed((yield replace(order, crash_at="batch_logged:3")))
    killed((yield replace(other, crash_at="committed:3")))
    refused((yield order), "batch 3 of pipeline 'forked' was delivered with other records than its")
    done((yield other))


def rebuilt(world, begin):
    """An approved rebuild goes on with its table; who comes back with the old state is refused."""
    order = world.named(world.table, f"rebuilt-{begin}")
    killed((yield replace(order, crash_at="before_commit_log:3")))
    changed = replace(order, changed=True)
    refused((yield changed), "was made for another plan")
    approve(changed, begin)
    killed((yield replace(changed, crash_at="before_batch:1")))
    done((yield changed))
    if begin == "earliest":
        assert set(world.rows(order)) >= set(world.peace["table"])
    directory = directory_of(order)
    (old,) = (directory / "old").iterdir()
    empty(directory, keep=("old", "lease"))
    (old / "rebuild.json").unlink()
    for path in old.iterdir():
        path.rename(directory / path.name)
    before = world.rows(order)
    refused((yield order), rf"pipeline '{order.name}' has delivered rows .* from state")
    assert world.rows(order) == before


def approve(order, begin):
    log = log_of(Path(order.path), order.name)
    mark = log.load_state().fingerprint
    new = decided(inherit(plan_of_text(log.load_plan(mark)), plan_of(order)))
    about = {"begin": begin, "reasons": (), "by": "t", "at": "2026-01-01T00:00:00Z"}
    save_approval(log.store, Approval(pipeline=order.name, old=mark, new=new, **about))


def lost_machine(world):
    """The table is ahead of the checkpoint that another machine restores."""
    order = world.named(replace(world.table, **world.safe), "lost-table")
    killed((yield replace(order, crash_at="before_batch:3")))
    killed((yield replace(order, crash_at="before_commit_log:5", snapshots="1h")))
    shutil.rmtree(directory_of(order))
    done((yield order))
    assert world.rows(order) == world.peace["table"]


def restored_twice(world):
    """A restored state is one until the batches behind its checkpoint have run."""
    order = world.named(replace(world.topic, **world.safe), "restored-twice")
    killed((yield replace(order, crash_at="before_batch:3")))
    killed((yield replace(order, crash_at="before_batch:6", snapshots="1h")))
    shutil.rmtree(directory_of(order))
    killed((yield replace(order, crash_at="commit_logged:*")))
    log = log_of(Path(order.path), order.name)
    assert (log.open_batch(), log.last_commit().number < 5) == (None, True)
    world.forget(order)
    refused((yield order), "was deleted, and it alone knew")


KINDS = ("exactly_once", "at_least_once", "table")
STORIES = {
    **{f"in peace: {kind}": (in_peace, kind) for kind in KINDS},
    **{f"taken back, topic {topic}": (taken_back, topic) for topic in ("there", "lost")},
    **{f"again: {point}": (run_again, point) for point in ("mapped", "before_commit_log")},
    "another batch of that number": (other_batch,),
    **{
        f"copied: table, {at}": (copied, "table", at)
        for at in ("before_batch:3", "before_commit_log:3")
    },
    "copied: at least once": (copied, "at_least_once", "before_batch:3"),
    **{f"left alone: {kind}": (left_alone, kind) for kind in KINDS},
    "forked": (forked,),
    **{f"rebuilt: {begin}": (rebuilt, begin) for begin in ("continue", "earliest")},
    "a machine with a table is lost": (lost_machine,),
    "restored twice": (restored_twice,),
}


@pytest.fixture(scope="module")
def told(crash_broker, forks, order, bucket, tmp_path_factory):
    """How each story ended: None, or what went wrong."""
    world = World(crash_broker, order, bucket, tmp_path_factory.mktemp("fences"))
    (world.folder / "strangers").mkdir()
    told, going = {}, {}
    for name, (story, *about) in STORIES.items():
        going[name] = story(world, *about), None
    while going:
        wanted = {}
        for name, (story, end) in going.items():
            try:
                wanted[name] = story, story.send(end)
            except StopIteration:
                told[name] = None
            except Exception as error:
                told[name] = error
        runs = [name for name, (_, what) in wanted.items() if isinstance(what, Order)]
        wakes = [name for name in wanted if name not in runs]
        ends = dict(zip(runs, forks.run([wanted[name][1] for name in runs]), strict=True))
        if wakes:
            woken = forks.wake([wanted[name][1] for name in wakes])
            ends |= dict(zip(wakes, woken, strict=True))
        going = {name: (wanted[name][0], ends[name]) for name in wanted}
    return told


@pytest.mark.parametrize("name", STORIES)
def test_story(told, name):
    if told[name] is not None:
        raise told[name]
