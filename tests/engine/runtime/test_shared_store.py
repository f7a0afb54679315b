import pytest

from kaflow_engine.errors import StateError
from kaflow_engine.runtime.tasks.shared_store import check_shared
from kaflow_engine.state.log.batch_log import BatchLog, StateRecord
from kaflow_engine.state.reader import StateRef
from kaflow_engine.state.storage.store import LocalStore


@pytest.mark.parametrize(("there", "told"), [(None, "finds nothing"), ("other", "another state")])
def test_a_host_that_sees_another_directory_is_named(tmp_path, there, told):
    if there is not None:
        _create(tmp_path, there)
    with pytest.raises(StateError, match=told) as error:
        check_shared(tmp_path, StateRef("s", 1))
    assert "shared folder" in error.value.hint
    assert error.value.exit_code == 14


def test_a_host_that_sees_the_state_goes_on(tmp_path):
    _create(tmp_path, "s")
    check_shared(tmp_path, StateRef("s", 1))


def _create(path, state_id):
    BatchLog(LocalStore(path)).create_state(
        StateRecord(
            state_id=state_id,
            generation=1,
            partitions=1,
            created_ms=0,
            start={},
            dimension_ends={},
            schemas={},
            fingerprint="f",
        )
    )
