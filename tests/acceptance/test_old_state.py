# pyright: basic
"""A state that commit e01c391 has written goes on: nothing is lost, and nothing written again.

Without Spark, as in `test_crash_points.py`; `tests/fixtures/states/README.md` says what the states
are. Some were killed within a batch, others were stopped; rows wait in all of them.
"""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from kaflow_engine.cli.main import kaflow
from kaflow_engine.state.log.batch_log import CommitRecord
from tests.acceptance.crash_here import Order
from tests.acceptance.crash_pipeline import log_of
from tests.acceptance.old_states import OldStates

pytestmark = pytest.mark.kafka

LEFT = {
    "old_topic_stopped": "topic",
    "old_topic_delivered": "topic",
    "old_table_logged": "table",
    "old_table_added": "table",
}
"""What the version has left, with the kind of its output."""
OPEN = ("old_topic_delivered", "old_table_logged", "old_table_added")
"""Killed within a batch: its rows delivered, not delivered, added to the table."""
FRESH = {"topic": "old_topic_fresh", "table": "old_table_fresh"}
"""Pipelines that begin today."""


class World:
    """The states before and after today's engine has run them, and pipelines that begin today."""

    def __init__(self, broker, forks, folder: Path) -> None:
        self.old = OldStates("e01c391", folder, broker.settings)
        self.files = {name: self.old.pipeline(kind, name) for name, kind in LEFT.items()}
        self.old.put_back()
        self.opened = [name for name in LEFT if self._log(name).open_batch()]
        self.before = {name: self.commit(name) for name in LEFT}
        self.rows_before = {name: self.old.rows(kind, name) for name, kind in LEFT.items()}
        self.plans = {name: self._plan(file) for name, file in self.files.items()}
        self.old.send_the_rest()
        self.files |= {name: self.old.pipeline(kind, name) for kind, name in FRESH.items()}
        orders = [
            Order(
                name=name,
                inputs="old",
                broker=broker.bootstrap,
                path=str(folder / "state"),
                warehouse=str(folder / "warehouse"),
                file=str(file),
            )
            for name, file in self.files.items()
        ]
        self.ends = dict(zip(self.files, forks.run(orders), strict=True))

    def commit(self, name: str) -> CommitRecord:
        found = self._log(name).last_commit()
        assert found is not None
        return found

    def _log(self, name: str):
        return log_of(self.old.folder / "state", name)

    def _plan(self, file: Path):
        settings = [part for each in self.old.settings for part in ("--set", each)]
        done = CliRunner().invoke(kaflow, ["plan", str(file), "--json", *settings])
        assert done.exit_code == 0, done.output
        (found,) = json.loads(done.stdout)
        return found


@pytest.fixture(scope="module")
def world(broker, forks, tmp_path_factory):
    return World(broker, forks, tmp_path_factory.mktemp("old"))


@pytest.mark.parametrize("name", LEFT)
def test_plan_says_that_the_state_goes_on(world, name):
    assert world.plans[name]["status"] == "unchanged"
    assert world.plans[name]["batch"] == world.before[name].number + 1


@pytest.mark.parametrize("name", LEFT)
def test_nothing_is_lost_and_nothing_comes_again(world, name):
    kind = LEFT[name]
    assert {world.ends[each].said for each in (name, FRESH[kind])} == {""}
    assert world.old.rows(kind, name) == world.old.rows(kind, FRESH[kind])
    assert world.old.letters(name) == world.old.letters(FRESH[kind])
    assert world.commit(name).counters == world.commit(FRESH[kind]).counters


def test_the_states_are_what_they_are_said_to_be(world):
    assert tuple(world.opened) == OPEN
    for name, kind in LEFT.items():
        counters = world.before[name].counters
        assert counters["waiting"] > 10
        assert counters["dead_letter"] > 1
        before, after = world.rows_before[name], world.old.rows(kind, name)
        assert len(before) > 10
        # rows of this user waited for a profile that is among the later records
        assert [any("u10" in row for row in rows) for rows in (before, after)] == [False, True]
