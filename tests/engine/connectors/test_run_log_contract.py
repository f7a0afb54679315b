"""What every log of runs must do: epochs rise, a run that was replaced writes nothing more."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kaflow_engine.connectors.holding import Holding
from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.connectors.kafka.run_log.control import ControlTopic
from kaflow_engine.connectors.local.run_log import LocalRunLog, run_log_file
from kaflow_engine.connectors.run_log import RunLog, RunStart
from kaflow_engine.errors import KaflowError, SinkAway, SinkError, StateError

Opens = Callable[[], RunLog]


@pytest.fixture(params=[pytest.param("kafka", marks=pytest.mark.kafka), "local"])
def opened(request: pytest.FixtureRequest, tmp_path: Path, unique: str) -> Opens:
    if request.param == "local":
        return lambda: LocalRunLog(tmp_path, unique)
    kafka: KafkaSettings = request.getfixturevalue("kafka")
    return lambda: ControlTopic(kafka, unique)


def test_the_first_run(opened: Opens) -> None:
    log = opened()
    assert log.states() == set()
    run = log.start_run("s1", 1)
    assert (run.epoch, run.delivered, run.batches, run.holdings) == (1, {}, {}, frozenset())


def test_epochs_rise(opened: Opens) -> None:
    assert [opened().start_run("s1", 1, after=a).epoch for a in (0, 0, 7, 0)] == [1, 2, 8, 9]


def test_batch_records(opened: Opens) -> None:
    with opened() as log:
        log.ensure()
        with pytest.raises(StateError, match="no run of pipeline"):
            log.put_batch(1, {})
        log.start_run("s1", 1)
        for batch in (1, 2, 3):
            log.put_batch(batch, {"ranges": {"t": {"0": [batch, batch + 1]}}})
        log.drop_batches([1, 2])
    with opened() as successor:
        assert successor.start_run("s1", 1).batches == {3: {"ranges": {"t": {"0": [3, 4]}}}}
    with opened() as other:
        assert other.start_run("s1", 2).batches == {}


@pytest.mark.parametrize(
    "call",
    [
        lambda log: log.claim(1, "m"),
        lambda log: log.require_newest(),
        lambda log: log.put_batch(1, {}),
    ],
    ids=["claim", "require_newest", "put_batch"],
)
def test_a_driver_that_was_replaced_writes_nothing(
    opened: Opens, call: Callable[[RunLog], None]
) -> None:
    stale, newer = opened(), opened()
    stale.start_run("s1", 1)
    call(stale)
    newer.start_run("s1", 1)
    with pytest.raises(SinkError, match=r"another run of .*pipeline.* has taken over"):
        call(stale)
    call(newer)


def test_a_driver_that_was_replaced_does_not_take_over_again(opened: Opens) -> None:
    stale, newer = opened(), opened()
    assert [stale.start_run("s1", 1).epoch for _ in range(2)] == [1, 2]
    newer.start_run("s1", 1)
    with pytest.raises(SinkError, match="has taken over: run 3"):
        stale.start_run("s1", 1)
    newer.put_batch(1, {})


def test_claims_never_go_back(opened: Opens) -> None:
    first, second = opened(), opened()
    first.start_run("s1", 1)
    first.claim(3, "three")
    second.start_run("s1", 1)
    second.claim(2, "two")  # runs again
    three = Holding(state="s1", generation=1, batch=3, mark="three")
    assert second.start_run("s1", 1).holdings == {three}
    second.claim(4, "four")
    assert {each.batch for each in second.start_run("s1", 1).holdings} == {4}


def test_a_dropped_state_is_forgotten(opened: Opens) -> None:
    log, other = opened(), opened()
    log.start_run("s1", 1)
    log.claim(5, "five")
    held = other.start_run("s1", 2)
    assert held.holdings == {Holding(state="s1", generation=1, batch=5, mark="five")}
    assert other.states() == {("s1", 1)}
    assert other.forget([("s1", 1)]) == 1
    assert other.states() == set()
    assert other.start_run("s2", 1).holdings == frozenset()


def test_a_start_that_is_refused_leaves_the_live_run_alone(opened: Opens) -> None:
    live, stranger = opened(), opened()
    live.start_run("s1", 1)
    live.claim(1, "one")
    asked: list[int] = []

    def refuse(start: RunStart) -> None:
        asked.extend(each.batch for each in start.holdings)
        raise StateError("another state has delivered")

    with pytest.raises(StateError, match="another state has delivered"):
        stranger.start_run("s2", 1, refuse)
    live.claim(2, "two")
    assert asked == [1]


def test_what_a_live_run_claims_while_another_starts_is_looked_at_again(opened: Opens) -> None:
    live = opened()
    live.start_run("s1", 1)
    seen: list[set[int]] = []

    def look(start: RunStart) -> None:
        seen.append({each.batch for each in start.holdings})
        if len(seen) == 1:
            live.claim(1, "one")

    opened().start_run("s1", 1, look)
    assert seen == [set(), {1}]


@pytest.mark.parametrize(
    ("is_there", "error", "match"),
    [
        ("garbage", StateError, "is no log of runs: file is not a database"),
        ("a folder", SinkAway, "cannot be written: unable to open database file"),
    ],
)
def test_a_file_that_is_no_log(
    tmp_path: Path, is_there: str, error: type[KaflowError], match: str
) -> None:
    path = run_log_file(tmp_path, "clicks")
    path.parent.mkdir()
    if is_there == "garbage":
        path.write_bytes(b"no database at all" * 100)
    else:
        path.mkdir()
    with pytest.raises(error, match=match):
        LocalRunLog(tmp_path, "clicks").ensure()


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    root = tmp_path / "a file"
    root.write_text("")
    with pytest.raises(SinkAway, match="cannot be written: Not a directory"):
        LocalRunLog(root, "clicks").ensure()
