"""A state that begins while another one is dropped stays."""
# pyright: basic

from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import pytest

from kaflow_engine.model.config import Config
from kaflow_engine.runtime.maintenance import drop as module
from kaflow_engine.runtime.maintenance.drop import Remembered, drop
from kaflow_engine.state.storage.lease import hold_lease


@pytest.mark.parametrize("begins", ["before the lease ends", "behind it", "never"])
def test_a_start_in_between(tmp_path, monkeypatch, begins):
    directory = tmp_path / "p"
    directory.mkdir()
    for name in ("state.json", "batches"):
        (directory / name).write_text("old")

    def begin(now):
        if now == begins:
            with hold_lease(directory):
                (directory / "state.json").write_text("new")

    @contextmanager
    def lease(path):
        with hold_lease(path):
            yield
            begin("before the lease ends")
        begin("behind it")

    control = SimpleNamespace(
        ensure=lambda: None,
        start_run=lambda *about, **more: None,
        states=frozenset,
        forget=len,
    )
    monkeypatch.setattr(module, "run_log_found", lambda *about: nullcontext(control))
    monkeypatch.setattr(module, "hold_lease", lease)
    found = Remembered(id="p", directory=directory, states=frozenset([("s", 1)]))
    assert drop(Config(), found) == 1
    if begins == "never":
        assert not directory.exists()
    else:
        assert (directory / "state.json").read_text() == "new"
        assert not (directory / "batches").exists()
