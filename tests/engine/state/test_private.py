"""State is for one user: folders are closed to others, and what others planted is refused."""

import logging
import os
import stat
import tempfile
from pathlib import Path

import pytest

from kaflow_engine.errors import StateError
from kaflow_engine.state.storage.copy_location import OnHost, copy_root, host_folder
from kaflow_engine.state.storage.lease import hold_lease, require_writable
from kaflow_engine.state.storage.store import LocalStore


@pytest.fixture(autouse=True)
def _a_generous_umask():
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """The machine's folder for temporary files, which everyone may write."""
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def mode(path: Path) -> str:
    return oct(stat.S_IMODE(path.stat().st_mode))


def claim(place):
    with copy_root(place, "1-0") as root:
        return root


def test_a_new_state_is_for_its_user_alone(tmp_path):
    directory = tmp_path / "state/orders"
    require_writable(directory.parent)
    with hold_lease(directory):
        LocalStore(directory).put("changes/1/0.arrow", b"x")
        assert mode(directory / "lease") == "0o600"
    assert {mode(path) for path in (directory.parent, directory)} == {"0o700"}
    assert {mode(path) for path in directory.rglob("*") if path.is_dir()} == {"0o700"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (0o755, "0o700"),
        (0o777, "0o770"),
        (0o750, "0o700"),
        (0o770, "0o770"),  # made for a group, such as that of a cluster's users
        (0o700, "0o700"),
    ],
)
def test_a_state_that_others_can_read_is_closed_to_them(tmp_path, caplog, before, after):
    caplog.set_level(logging.INFO)
    tmp_path.chmod(0o755)
    directory = tmp_path / "orders"
    directory.mkdir()
    directory.chmod(before)
    with hold_lease(directory), hold_lease(directory / "one"):
        assert mode(directory) == after
        LocalStore(directory).put("changes/1/0.arrow", b"x")
        assert mode(directory / "changes") == after
    assert ("closed to other users" in caplog.text) == (oct(before) != after)
    assert mode(tmp_path) == "0o755"  # what is around it is not ours


def test_a_state_that_cannot_be_closed_is_a_warning(tmp_path, caplog, monkeypatch):
    directory = tmp_path / "orders"
    directory.mkdir(mode=0o755)

    def refuse(*about):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "chmod", refuse)
    with hold_lease(directory):
        pass
    assert f"'{directory}' can be read by other users" in caplog.text


def test_copies_on_a_host_without_a_disk_of_spark_are_private(temporary):
    root = claim(OnHost("orders"))
    own = temporary / f"kaflow-{os.geteuid()}"
    assert root == own / "orders/0"
    assert mode(own) == "0o700"


def plant(folder):
    """Leave a copy where a run would find it."""
    (folder / "0").mkdir(parents=True)
    (folder / "0/1-0").write_text("planted")


def test_copies_that_another_user_planted_are_refused(temporary, monkeypatch):
    planted = temporary / f"kaflow-{os.geteuid() + 1}"
    plant(planted / "orders")
    planted.chmod(0o700)
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    with pytest.raises(StateError, match="belongs to another user") as refused:
        claim(OnHost("orders"))
    assert str(planted) in str(refused.value)
    assert "state.rocksdb.local" in refused.value.hint


def test_copies_that_others_could_plant_are_refused(temporary):
    own = temporary / f"kaflow-{os.geteuid()}"
    plant(own / "orders")
    own.chmod(0o777)
    with pytest.raises(StateError, match="can be written by other users"):
        claim(OnHost("orders"))


def test_a_link_to_other_copies_is_refused(temporary, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    plant(elsewhere / "orders")
    (temporary / f"kaflow-{os.geteuid()}").symlink_to(elsewhere)
    with pytest.raises(StateError, match="is no folder"):
        claim(OnHost("orders"))


@pytest.mark.parametrize("given", ["local", "spark"])
def test_every_place_of_copies_is_looked_at(tmp_path, given, monkeypatch):
    place = OnHost("orders", tmp_path) if given == "local" else OnHost("orders")
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "blockmgr-1"))
    gate = host_folder(place, "1-0")
    gate = gate if given == "local" else gate.parent
    plant(gate)
    gate.chmod(0o777)
    with pytest.raises(StateError, match="can be written by other users"):
        claim(place)
    gate.chmod(0o755)
    claim(place)
    assert mode(gate) == "0o700"
