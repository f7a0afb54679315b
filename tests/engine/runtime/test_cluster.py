import pytest

from kaflow_engine.runtime.failures.failures import ClusterAway
from kaflow_engine.runtime.spark.cluster import (
    addresses,
    require_master,
    unprotected,
    warn_of,
)
from kaflow_engine.testing.services.child import free_ports


def test_a_master_that_does_not_answer_is_asked_once(monkeypatch):
    (port,) = free_ports(1)
    monkeypatch.setattr("time.sleep", pytest.fail)
    with pytest.raises(ClusterAway, match="no Spark master answers at spark://127") as told:
        require_master(f"spark://127.0.0.1:{port}")
    assert "spark.master" in told.value.hint
    assert told.value.exit_code == 1


@pytest.mark.parametrize("master", ["local[2]", "yarn", "k8s://https://host:6443"])
def test_only_standalone_masters_are_asked(master):
    assert addresses(master) == ()
    require_master(master)


ON = {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}


@pytest.mark.parametrize(
    ("master", "conf", "off"),
    [
        ("local[2]", {}, ()),
        ("spark://host:7077", ON, ()),
        ("spark://host:7077", {}, tuple(ON)),
        ("k8s://https://host:6443", {}, tuple(ON)),
        ("yarn", {**ON, "spark.authenticate": "false"}, ("spark.authenticate",)),
        ("yarn", {"spark.authenticate": " TRUE"}, ("spark.network.crypto.enabled",)),
        ("yarn", {"spark.authenticate": "true", "spark.ssl.rpc.enabled": "true"}, ()),
    ],
)
def test_what_keeps_others_from_a_cluster(master, conf, off):
    assert unprotected(master, conf) == off


def test_what_is_off_is_a_warning_once(caplog):
    warn_of.cache_clear()
    for _ in range(3):
        warn_of(tuple(ON))
        warn_of(())
    (told,) = caplog.records
    assert told.levelname == "WARNING"
    assert told.getMessage().startswith(
        "'spark.authenticate' and 'spark.network.crypto.enabled' are off: who reaches"
    )
