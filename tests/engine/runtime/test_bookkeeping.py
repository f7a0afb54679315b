"""Where the runs of a pipeline are noted, and what takes its records."""
# pyright: basic

from dataclasses import replace

import pytest

from kaflow_engine.connectors.kafka.admin import TopicInfo
from kaflow_engine.connectors.run_log import RunStart
from kaflow_engine.errors import StateError
from kaflow_engine.model.config import Config
from kaflow_engine.runtime.planning.plan_codec import fingerprint, plan_text
from kaflow_engine.runtime.sink import bookkeeping as module
from kaflow_engine.runtime.sink.bookkeeping import records_of_run, run_log_found, run_log_of
from kaflow_engine.runtime.sink.claims import Claims
from kaflow_engine.state.log.batch_log import BatchLog, StateRecord
from kaflow_engine.state.storage.store import LocalStore
from tests.engine.runtime.plans_here import filter_plan

PLAN = filter_plan("p", "events", "out")
IN_WEST = replace(PLAN, sinks=tuple(replace(sink, cluster="west") for sink in PLAN.sinks))
STATE = StateRecord(
    state_id="s",
    generation=1,
    partitions=2,
    created_ms=0,
    start={},
    dimension_ends={},
    schemas={},
    fingerprint=fingerprint(IN_WEST),
)


def config(path, *clusters):
    kafka = {"clusters": {name: {"brokers": f"{name}:9092"} for name in clusters}}
    return Config.model_validate({"kafka": kafka, "state": {"rocksdb": {"path": str(path)}}})


@pytest.fixture
def log(tmp_path):
    return BatchLog(LocalStore(tmp_path / "p"))


def logs_of(found):
    """Return the brokers of the log itself, and those of other clusters."""
    home, others = (found._home, found._others) if hasattr(found, "_home") else (found, {})
    return home.settings.brokers, {name: each.settings.brokers for name, each in others.items()}


def test_the_log_of_a_state_that_is_there_is_that_of_its_plan(tmp_path, log):
    log.save_plan(STATE.fingerprint, plan_text(IN_WEST))
    log.create_state(STATE)
    found = run_log_found(config(tmp_path, "west", "east"), "p", log)
    assert logs_of(found) == (("localhost:9092",), {"west": ("west:9092",)})
    with pytest.raises(StateError, match="has written to cluster 'west', which is not in the") as e:
        run_log_found(config(tmp_path), "p", log)
    assert e.value.hint.startswith("configure it as kafka.clusters.west again")


@pytest.mark.parametrize("cluster", ["", "west"])
def test_a_home_that_is_not_configured_is_a_mistake(tmp_path, cluster):
    plan = replace(PLAN, cluster="east")
    with pytest.raises(StateError, match="has written to cluster 'east'"):
        run_log_of(config(tmp_path, *([cluster] if cluster else [])), plan)


@pytest.mark.parametrize("damaged", ["state.json", "plan", None])
def test_of_a_state_that_cannot_be_read_the_clusters_are_asked(tmp_path, log, monkeypatch, damaged):
    if damaged == "plan":
        log.create_state(STATE)  # its plan is not there
    elif damaged is not None:
        LocalStore(tmp_path / "p").put(damaged, b"{")
    there = {"west:9092", "east:9092"}

    def describe(kafka, topics):
        return {topic: TopicInfo(1, kafka.bootstrap in there) for topic in topics}

    monkeypatch.setattr(module, "describe", describe)
    found = run_log_found(config(tmp_path, "west", "east", "north"), "p", log)
    assert logs_of(found) == (("west:9092",), {"east": ("east:9092",)})
    monkeypatch.setattr(module, "describe", pytest.fail)
    assert logs_of(run_log_found(config(tmp_path), "p", log)) == (("localhost:9092",), {})


START = RunStart(
    epoch=1,
    epoch_offset=0,
    delivered={},
    rows={},
    digests={},
    batches={},
    holdings=frozenset(),
)


@pytest.mark.parametrize(
    ("now", "before", "in_files"),
    [(None, None, False), ("files", None, True), (None, "files", True)],
)
def test_dead_letters_of_an_open_batch_go_where_it_was_begun_for(tmp_path, now, before, in_files):
    plan, begun = (replace(PLAN, letters=each) for each in (now, before))
    _, letters = records_of_run(config(tmp_path), plan, STATE, START, begun)
    assert (letters is not None) == in_files
    assert Claims.of(None, plan, letters).transactional != in_files
