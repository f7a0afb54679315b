"""State that was lost, taken back, damaged, or had no room: made good, or refused by name.

Every refusal is followed by what it asks for, after which the rows are those of a run in peace. A
run of the tests draws some kinds of harm, `KAFLOW_KILLS=all` tries all.
"""

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from kaflow_engine.connectors.kafka.admin import delete_topics
from kaflow_engine.connectors.kafka.run_log.transactions import control_topic
from kaflow_engine.errors import StateError
from tests.acceptance.crash_pipeline import create_outputs, delivered, log_of
from tests.acceptance.kills import share

pytestmark = pytest.mark.kafka


def lose(*patterns):
    """Harm that removes what the patterns name."""

    def harm(state: Path) -> None:
        for pattern in patterns:
            for path in list(state.glob(pattern)):
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    return harm


def alter(pattern, change):
    """Harm that changes the content of one file, one that no other name shares if there is one."""

    def harm(state: Path) -> None:
        files = sorted(path for path in state.glob(pattern) if path.is_file())
        victim = min(files, key=lambda path: path.stat().st_nlink)
        data = change(victim.read_bytes())
        victim.unlink()
        victim.write_bytes(data)

    return harm


def torn(data: bytes) -> bytes:
    return data[: len(data) * 2 // 3]


def flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def both(*harms):
    def harm(state: Path) -> None:
        for each in harms:
            each(state)

    return harm


@dataclass(frozen=True)
class Row:
    name: str
    crash_at: str
    """Where the state was left."""
    harm: Callable[[Path], None]
    refusal: str = ""
    """Regular expression; empty: the next run makes it good."""
    snapshots: str = "1h"


AGAIN = "restore .* from a backup"
CHANGE = (
    r"state partition '\d-\d' cannot be brought to batch 2: change file 'changes/2/\d-\d\.1\.arrow'"
)
TORN_SST = alter("snapshots/3/*/*.sst", torn)
ROWS = (
    Row(
        "everything is lost",
        "before_batch:3",
        lose("*"),
        r"has delivered rows \(up to batch 2\) from state '\w+' generation 1, but the state at "
        r"hand is '\w+' generation 1\n  hint: bring that state back .*, or give .* a new `id:`",
    ),
    Row(
        "the log is lost",
        "before_batch:3",
        lose("batches", "commits", "changes", "copies"),
        r"batch 2 of .* was delivered, but its log ends at batch 0\n.*restore the newer state",
    ),
    Row(
        "the log was taken back",
        "before_batch:3",
        lose("batches/2.json", "commits/2.json", "changes/2"),
        r"batch 2 of .* was delivered, but its log ends at batch 1\n.*restore the newer state",
    ),
    Row("a commit is lost, so its batch is open", "before_batch:3", lose("commits/2.json")),
    Row("the copies are lost", "before_batch:3", lose("copies")),
    Row("a copy is torn", "before_batch:3", alter("copies/*/*.sst", torn)),
    Row("a copy lacks its manifest", "before_batch:3", lose("copies/1-0/MANIFEST*")),
    *(
        Row(f"a change file is {how}", "commit_logged:2", alter("changes/2/1-*", change), said)
        for how, change, said in (
            ("torn", torn, rf"{CHANGE} is damaged: its checksum is wrong\n.*{AGAIN}"),
            ("flipped", flipped, rf"{CHANGE} is damaged: its checksum is wrong\n.*{AGAIN}"),
        )
    ),
    Row(
        "a change file is lost",
        "commit_logged:2",
        lose("changes/2/1-0*"),
        r"'1-0' cannot be brought to batch 2: 'changes/2/1-0\.1\.arrow' is missing in "
        rf".*\n.*{AGAIN}",
    ),
    Row(
        "a snapshot covers the change file",
        "snapshot_taken:2",
        both(lose("copies"), alter("changes/2/*", flipped)),
        snapshots="1ms",
    ),
    *(
        Row(f"the newer snapshot's {what} is {how}", "before_batch:4", harm, snapshots="1ms")
        for what, how, harm in (
            ("table", "torn", both(lose("copies"), TORN_SST)),
            ("table", "flipped", both(lose("copies"), alter("snapshots/3/*/*.sst", flipped))),
            ("list", "flipped", both(lose("copies"), alter("snapshots/3/1-0/manifest*", flipped))),
            ("list", "lost", both(lose("copies"), lose("snapshots/3/manifest.json"))),
        )
    ),
    Row(
        "both snapshots are torn",
        "before_batch:4",
        both(lose("copies"), *(alter(f"snapshots/{n}/1-0/CURRENT", torn) for n in (2, 3))),
        r"'1-0' cannot be brought to batch 3: 'snapshots/3/1-0/CURRENT' is damaged; "
        rf"'snapshots/2/1-0/CURRENT' is damaged; 'commits/1\.json' is missing .*\n.*{AGAIN}",
        snapshots="1ms",
    ),
    *(
        Row(f"{file} is flipped", at, alter(file, flipped), rf"'{file}' is damaged\n.*{AGAIN}")
        for file, at in (
            ("state.json", "before_batch:3"),
            ("commits/2.json", "before_batch:3"),
            ("batches/2.json", "committed:2"),
        )
    ),
    Row(
        "the plan is lost",
        "committed:2",
        lose("plans"),
        rf"'plans/\w+\.json' is missing .*\n.*{AGAIN}",
    ),
)
IDS = share([row.name for row in ROWS], 6)
DRAWN = [row for row in ROWS if row.name in IDS]


def pipeline_of(row):
    return re.sub(r"\W+", "-", row.name)


@pytest.fixture(scope="module")
def ends(crash_broker, forks, order, tmp_path_factory):
    """Per row: the run that was killed, the one after the harm, and the one after the cure."""
    path, backup = Path(order.path), tmp_path_factory.mktemp("backup")
    orders = []
    for row in DRAWN:
        name = pipeline_of(row)
        create_outputs(crash_broker.settings, name)
        orders.append(replace(order, name=name, crash_at=row.crash_at, snapshots=row.snapshots))
    killed = forks.run(orders)
    for row, each in zip(DRAWN, orders, strict=True):
        shutil.copytree(path / each.name, backup / each.name)
        row.harm(path / each.name)
    orders = [replace(each, crash_at="") for each in orders]
    harmed = forks.run(orders)
    for end, each in zip(harmed, orders, strict=True):
        if end.exit_code:
            shutil.rmtree(path / each.name)
            shutil.copytree(backup / each.name, path / each.name)
    return dict(zip(IDS, zip(killed, harmed, forks.run(orders), strict=True), strict=True))


@pytest.mark.parametrize("row", DRAWN, ids=IDS)
def test_harm_is_made_good_or_refused(crash_broker, order, peace, ends, row):
    killed, harmed, cured = ends[row.name]
    assert killed.how == "killed"
    if row.refusal:
        assert harmed.exit_code == StateError.exit_code, harmed
        assert re.search(row.refusal, harmed.said, re.DOTALL), harmed.said
    else:
        assert (harmed.how, harmed.said) == ("ended", "")
    assert (cured.how, cured.said) == ("ended", "")
    name = pipeline_of(row)
    assert delivered(crash_broker.settings, name, log_of(Path(order.path), name)) == peace


def test_a_pipeline_forgot_its_deliveries(crash_broker, forks, order, peace):
    orders = []
    for point in ("committed:2", "before_batch:3"):
        name = f"forgot-{point.partition(':')[0]}"
        create_outputs(crash_broker.settings, name)
        orders.append(replace(order, name=name, crash_at=point))
    forks.run(orders)
    delete_topics(crash_broker.settings, [control_topic(each.name) for each in orders])
    doubtful, sure = (replace(each, crash_at="") for each in orders)
    for _ in range(2):
        refused, done = forks.run([doubtful, sure])
        assert refused.exit_code == StateError.exit_code
        assert "was deleted, and it alone knew whether batch 2 of pipeline" in refused.said
        assert (done.how, done.said) == ("ended", "")
    log = log_of(Path(order.path), sure.name)
    assert delivered(crash_broker.settings, sure.name, log) == peace
    (once,) = forks.run([replace(doubtful, delivery="at_least_once")])
    assert (once.how, once.said) == ("ended", "")
    log = log_of(Path(order.path), doubtful.name)
    found = delivered(crash_broker.settings, doubtful.name, log)
    assert {key: set(rows) for key, rows in found.rows.items()} == {
        key: set(rows) for key, rows in peace.rows.items()
    }


FULL = share((0, 1, 2, 3, 6, 7, 9, 20, 32, 36), 3)
"""Files there is room for: the first run writes state, plan, a batch, its changes, a snapshot, …"""


@pytest.fixture(scope="module")
def full(crash_broker, forks, order):
    orders = []
    for room in FULL:
        name = f"full-{room}"
        create_outputs(crash_broker.settings, name)
        orders.append(replace(order, name=name, full_after=room, snapshots="1ms"))
    stopped = forks.run(orders)
    done = forks.run([replace(each, full_after=None) for each in orders])
    return dict(zip(FULL, zip(stopped, done, strict=True), strict=True))


@pytest.mark.parametrize("room", FULL)
def test_the_disk_is_full(crash_broker, order, peace, full, room):
    stopped, done = full[room]
    assert stopped.exit_code == StateError.exit_code
    place = f"'[a-z]+[^']*' in {order.path}/full-{room}: no space left on device"
    assert re.search(f"StateError: cannot write {place}\n  hint: check free space", stopped.said)
    assert (done.how, done.said) == ("ended", "")
    name = f"full-{room}"
    assert delivered(crash_broker.settings, name, log_of(Path(order.path), name)) == peace
