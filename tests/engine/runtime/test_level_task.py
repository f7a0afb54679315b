import os
import pickle
from dataclasses import replace

import pyarrow as pa
import pytest

from kaflow_engine.errors import SourceError
from kaflow_engine.operators.rows.task import BatchContext
from kaflow_engine.runtime.batch.task_metrics import changes_of
from kaflow_engine.runtime.failures.error_wire import SECRET
from kaflow_engine.runtime.failures.failures import to_error
from kaflow_engine.runtime.jobs.executor import Shipment, executed
from kaflow_engine.runtime.tasks.level_task import first_task, level_task, whole_task
from kaflow_engine.runtime.tasks.settings import TaskSettings
from kaflow_engine.state.log.batch_log import BatchLog, CommitRecord, StateRecord
from kaflow_engine.state.storage.store import LocalStore
from tests.engine.runtime.plans_here import lookup_plan
from tests.engine.runtime.records_here import records

GOOD = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
PLAN = lookup_plan("p", "events", "profiles", "out")
PROFILES = records("profiles", [{"id": f"u{i}", "tier": f"t{i}"} for i in range(5)])
EVENTS = records("events", [{"id": f"u{i % 5}", "n": str(i)} for i in range(12)])


@pytest.fixture
def log(tmp_path):
    found = BatchLog(LocalStore(tmp_path))
    found.create_state(
        StateRecord(
            state_id="s",
            generation=1,
            partitions=PLAN.partitions,
            created_ms=0,
            start={},
            dimension_ends={},
            schemas={},
            fingerprint="f",
        )
    )
    return found


@pytest.fixture
def settings(tmp_path, log):
    found = TaskSettings(
        plan=PLAN,
        directory=tmp_path,
        state=log.load_state().ref,
        epoch=1,
        snapshots=log.store,
        sink=None,
        driver=os.getpid(),
    )
    return Shipment.of(found).data


def context(batch):
    return BatchContext(batch=batch, batch_time=5000, watermarks={}, epoch=1)


def commit(log, batch, report):
    changes = dict(changes_of(report))
    log.commit(CommitRecord(number=batch, epoch=1, changes=changes, watermark={}, next_due={}))


def result(given):
    done = executed(given)
    return done.report, done.output


def test_what_one_batch_wrote_the_next_one_reads(settings, log):
    report, output = result(whole_task(settings, context(1), iter(PROFILES.to_batches())))
    assert output.num_rows == 0
    assert set(changes_of(report)) <= {"1-0", "1-1"}
    commit(log, 1, report)
    report, output = result(whole_task(settings, context(2), iter(EVENTS.to_batches())))
    assert report.counters == {"emitted": 12, "read": 12}
    assert output["value"][0].as_py() == b'{"id":"u0","n":"0","tier":"t0"}'


@pytest.mark.parametrize(
    ("traced", "wanted"),
    [(frozenset({"events"}), [GOOD]), (frozenset({"profiles"}), []), (frozenset(), [])],
    ids=["of driving records", "of others", "not asked for"],
)
def test_traceparents_are_reported_where_they_are_asked_for(settings, traced, wanted):
    found = replace(pickle.loads(settings[len(SECRET) :]), traced=traced)
    sent = pa.array([[{"key": "traceparent", "value": GOOD.encode()}]] * EVENTS.num_rows)
    at = EVENTS.schema.get_field_index("headers")
    events = EVENTS.set_column(at, EVENTS.schema.field(at), sent.cast(EVENTS.schema.field(at).type))
    report, _ = result(whole_task(Shipment.of(found).data, context(1), iter(events.to_batches())))
    assert [each for note in report.notes for each in note.get("traceparents", ())] == wanted


def test_level_after_level_gives_the_same_rows(settings, log):
    both = pa.concat_tables([PROFILES, EVENTS]).to_batches()
    report, output = result(whole_task(settings, context(1), iter(both)))
    sent = list(first_task(settings, context(1), 1, iter(both)))
    assert {task for task, _ in sent} == {0}
    streams = (data for _, data in sent)
    again, rows = result(level_task(settings, context(1), 1, 1, streams))
    assert rows.equals(output)
    assert again.counters == report.counters
    assert again.partitions == report.partitions
    assert changes_of(again) == changes_of(report)


def test_a_task_without_records_runs_too(settings, log):
    report, output = result(whole_task(settings, context(1), iter([])))
    assert (output.num_rows, report.counters) == (0, {})


def test_an_error_in_a_task_is_carried(settings, log, monkeypatch):
    def fail(*args):
        raise SourceError("no", hint="cure")

    monkeypatch.setattr("kaflow_engine.runtime.tasks.level_task.run_level", fail)
    with pytest.raises(RuntimeError) as raised:
        list(whole_task(settings, context(1), iter([])))
    assert str(to_error(raised.value)) == "no\n  hint: cure"


def test_settings_that_cannot_be_read_are_an_error_that_arrives(settings):
    with pytest.raises(RuntimeError) as raised:
        list(whole_task(settings[:40] + b"torn", context(1), iter([])))
    assert to_error(raised.value).message.startswith("a task failed: UnpicklingError")
