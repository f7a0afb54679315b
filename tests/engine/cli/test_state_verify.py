"""What `kaflow state verify` finds, and what a healthy state looks like to it."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from kaflow_engine.cli.main import kaflow
from kaflow_engine.state.copies.rocks_open import open_copy
from kaflow_engine.state.storage.copy_location import COPIES
from tests.engine.runtime.state_here import StateHere, random_batches, state_plan

pytestmark = pytest.mark.slow

PLAN = state_plan("users", partitions=2)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A state behind six batches, with snapshots behind the third and the fifth."""
    root = tmp_path_factory.mktemp("verified")
    here = StateHere(root, PLAN)
    for number, (records, at) in enumerate(random_batches(3, PLAN, 6, 20), 1):
        here.run(records, at, snapshot=number in (3, 5))
    return root


def verified(root: Path, code: int):
    command = ["state", "verify", "shop", "--json", "--set", f"state.rocksdb.path={root}"]
    done = CliRunner().invoke(kaflow, command)
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


def flip(pattern):
    """Change a bit in the middle of a file; which one, it returns."""

    def harm(state: Path) -> str:
        path = sorted(state.glob(pattern))[0]
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.unlink()  # another name may share the content
        path.write_bytes(data)
        return str(path.relative_to(state))

    return harm


def alter(pattern, old, new):
    """Replace what stands in a file; which one, it returns."""

    def harm(state: Path) -> str:
        path = sorted(state.glob(pattern))[0]
        path.write_bytes(path.read_bytes().replace(old, new))
        return str(path.relative_to(state))

    return harm


def lose(pattern):
    """Remove a file; which one, it returns."""

    def harm(state: Path) -> str:
        path = sorted(state.glob(pattern))[0]
        path.unlink()
        return str(path.relative_to(state))

    return harm


def smuggle(state: Path) -> str:
    """Let a copy that runs use have an entry that no batch wrote."""
    ref = StateHere(state.parent, PLAN).state.ref
    with open_copy(state / COPIES / "1-0", ref) as copy:
        copy._db[b"\0\0\0\0\0\1z"] = b""
    return f"{COPIES}/1-0"


def smuggle_into_snapshot(state: Path) -> str:
    """Let a snapshot have such an entry, and the copies not."""
    here = StateHere(state.parent, PLAN)
    smuggle(state)
    shutil.rmtree(state / "snapshots/3")
    _, (records, at) = random_batches(3, PLAN, 7, 20)[5:]
    here.run(records, at, snapshot=True)
    shutil.rmtree(state / COPIES)
    return "snapshots/7/1-0/manifest.json"


ROWS = {
    "a batch": (flip("batches/4.json"), "is damaged", "new `id:`"),
    "a commit": (flip("commits/4.json"), "is damaged", "new `id:`"),
    "a lost commit": (lose("commits/4.json"), "is missing", "new `id:`"),
    "a change file": (flip("changes/6/*.arrow"), "its checksum is wrong", "new `id:`"),
    "a lost change file": (lose("changes/4/*.arrow"), "is missing", "snapshot was taken later"),
    "a manifest": (alter("snapshots/5/m*", b"{", b""), "is damaged", "an older snapshot is used"),
    "names in it": (alter("snapshots/3/m*", b"1-0", b"1-8"), "1-0, 1-8", "an older snapshot"),
    "a manifest of a partition": (flip("snapshots/5/1-1/m*"), "is damaged", "an older snapshot"),
    "a file of a snapshot": (flip("snapshots/5/1-0/*.sst"), "is damaged", "an older snapshot"),
    "a plan": (flip("plans/*.json"), "", "from a backup"),
    "the state": (flip("state.json"), "is damaged", "the whole directory"),
    "a copy": (smuggle, "not what snapshots and change files lead to", "remove this folder"),
    "what a snapshot holds": (smuggle_into_snapshot, "the snapshot before it", "snapshots/7"),
}


@pytest.mark.parametrize("name", ROWS)
def test_what_is_damaged_is_named_with_its_cure(made, tmp_path, name):
    harm, what, cure = ROWS[name]
    shutil.copytree(made, tmp_path / "own")
    file = harm(tmp_path / "own" / "shop")
    found = verified(tmp_path / "own", code=14)
    assert not found["sound"]
    by_file = {each["file"]: each for each in found["findings"]}
    assert what in by_file[file]["what"]
    assert cure in by_file[file]["cure"]


def test_a_healthy_state_is_sound(made, tmp_path):
    shutil.copytree(made, tmp_path / "own")
    found = verified(tmp_path / "own", code=0)
    assert found == {
        "sound": True,
        "batches": 4,
        "change_files": found["change_files"],
        "snapshots": 2,
        "built": 2,
        "compared": 4,
        "findings": [],
    }
    assert found["change_files"] >= 4


def test_a_rescaled_state_is_sound(made, tmp_path):
    from kaflow_engine.runtime.maintenance.rescale import rescale

    shutil.copytree(made, tmp_path / "own")
    here = StateHere(tmp_path / "own", PLAN)
    rescale(here.directory, here.log, here.log.store, 3, epoch=2, now=1)
    found = verified(tmp_path / "own", code=0)
    assert (found["sound"], found["snapshots"], found["built"]) == (True, 3, 3)
    assert {each["level"] for each in found["findings"]} == {"note"}
