# pyright: basic
"""One run writes, whatever it writes to; what a sink holds is neither dropped nor written again.

Without Spark, as in `test_crash_points.py`. A story yields a run to start, or one to wake up, and
gets how it ended; the runs of all stories go side by side.
"""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from kaflow_engine.plan.evolution.evolution import inherit
from kaflow_engine.runtime.planning.plan_codec import decided, plan_of
from kaflow_engine.state.log.approval import Approval, save_approval
from tests.acceptance.crash_pipeline import FEW, crash_plan, log_of
from tests.acceptance.stories import (
    MOST,
    World,
    asleep,
    directory_of,
    done,
    empty,
    killed,
    load_profiles,
    refused,
    take_back,
    taken_over,
    tell,
)

pytestmark = [pytest.mark.kafka, pytest.mark.services]


def in_peace(world, kind):
    order = world.named(kind_of(world, kind), f"calm-{kind}")
    done((yield order))
    world.peace[kind] = world.rows(order)
    assert len(world.peace[kind]) > 200


def kind_of(world, kind):
    if kind == "at_least_once":
        return replace(world.topic, delivery=kind)
    return world.table if kind == "table" else world.topic


def taken_back(world):
    """The log of a table is older than the table, which alone knows."""
    order = world.named(world.table, "taken-back")
    killed((yield replace(order, crash_at="before_batch:4")))
    backup = directory_of(world.copy(order))
    take_back(order, 3)
    before = world.rows(order)
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


def run_again(world):
    """A batch that the table has, and the log has not, is not added again."""
    order = world.named(world.table, "again")
    killed((yield replace(order, crash_at="before_commit_log:3")))
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


def silent(world):
    """A run that has nothing to deliver ends as well when another one has begun."""
    order = world.named(replace(world.topic, inputs="silent"), "silent")
    first = yield asleep(order, "before_batch:2")
    assert first.how == "stopped"
    done((yield world.copy(order)))
    assert world.rows(order) == []
    taken_over((yield first))
    assert log_of(Path(order.path), order.name).last_commit().number == 1


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
    plan = crash_plan(order.name, order.inputs, order.delivery, order.warehouse, order.changed)
    new = decided(inherit(plan_of(log.load_plan(mark)), plan))
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


def dropped(world):
    """An output that is taken away has all rows of the batch that was begun for it."""
    whole, order = (world.named(world.several, name) for name in ("whole", "taken-away"))
    killed((yield replace(whole, crash_at="before_commit_log:3")))
    killed((yield replace(order, crash_at="before_table:3")))
    before = world.rows_of(order, FEW)
    done((yield replace(order, several=3)))
    assert len(before) < len(world.rows_of(order, FEW))
    assert world.rows_of(order, FEW) == world.rows_of(whole, FEW)
    assert world.rows(order) == world.peace["table"]


KINDS = ("exactly_once", "at_least_once", "table")
STORIES = {
    **{f"in peace: {kind}": (in_peace, kind) for kind in KINDS},
    "taken back": (taken_back,),
    "run again": (run_again,),
    "another batch of that number": (other_batch,),
    **{
        f"copied: {kind}, {at}": (copied, kind, at)
        for kind, at in (
            ("table", "before_batch:3"),
            ("table", "before_commit_log:3"),
            ("at_least_once", "before_batch:3"),
        )
    },
    "copied: nothing to deliver": (silent,),
    **{f"left alone: {kind}": (left_alone, kind) for kind in KINDS},
    "forked": (forked,),
    **{f"rebuilt: {begin}": (rebuilt, begin) for begin in ("continue", "earliest")},
    "a machine with a table is lost": (lost_machine,),
    "restored twice": (restored_twice,),
    "an output is taken away": (dropped,),
}


@pytest.fixture(scope="module")
def told(crash_broker, forks, order, bucket, tmp_path_factory):
    """How each story ended: None, or what went wrong."""
    world = World(crash_broker, order, bucket, tmp_path_factory.mktemp("fences"))
    load_profiles(crash_broker.settings, "silent")
    (world.folder / "strangers").mkdir()
    return tell(forks, {name: story(world, *about) for name, (story, *about) in STORIES.items()})


@pytest.mark.parametrize("name", STORIES)
def test_story(told, name):
    if told[name] is not None:
        raise told[name]
