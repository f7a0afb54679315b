import pytest

from kaflow_engine.runtime.failures import ClusterAway
from kaflow_engine.runtime.masters import addresses, require_master
from kaflow_engine.testing.child import free_ports


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
