"""The bytes of the pipeline's own topic, and what they add up to."""

import pytest

from kaflow_engine.connectors.kafka.run_log.control_records import (
    BatchRecord,
    ControlRecord,
    ControlView,
    Epoch,
    Marker,
    Slot,
    from_bytes,
    to_bytes,
)

MARKER = Marker(
    state="s1", generation=2, sink="out", partition=3, batch=7, epoch=4, rows=9, mark="m7"
)
MARKER_KEY = b'{"generation":2,"kind":"marker","partition":3,"sink":"out","state":"s1"}'


@pytest.mark.parametrize(
    ("record", "key", "value"),
    [
        (Epoch(4, "x"), b'{"kind":"epoch"}', b'{"epoch":4,"process":"x"}'),
        (Slot("kaflow.p.x", 4), b'{"id":"kaflow.p.x","kind":"slot"}', b'{"epoch":4}'),
        (Slot("kaflow.p.x", None), b'{"id":"kaflow.p.x","kind":"slot"}', None),
        (MARKER, MARKER_KEY, b'{"batch":7,"epoch":4,"mark":"m7","rows":9}'),
        (
            Marker(state="s1", generation=2, sink="out", partition=3, batch=None),
            MARKER_KEY,
            None,
        ),
        (
            BatchRecord(state="s1", generation=2, batch=7, record={"a": [1]}),
            b'{"batch":7,"generation":2,"kind":"batch","state":"s1"}',
            b'{"a":[1]}',
        ),
    ],
)
def test_round_trip(record: ControlRecord, key: bytes, value: bytes | None) -> None:
    assert to_bytes(record) == (key, value)
    assert from_bytes(key, value) == record


def test_a_foreign_record_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown kind of record 'x'"):
        from_bytes(b'{"kind":"x"}', b"{}")


def test_later_records_replace_earlier_ones() -> None:
    view = ControlView()
    older = Marker(state="s1", generation=2, sink="out", partition=3, batch=6)
    dropped = BatchRecord(state="s1", generation=2, batch=1, record=None)
    kept = BatchRecord(state="s1", generation=2, batch=2, record={"n": 2})
    records = [Epoch(1), Slot("a", 1), Slot("b", 1), older, Epoch(2, "x"), MARKER, Slot("a", None)]
    view.take(to_bytes(record) for record in [*records, dropped, kept])
    assert (view.epoch, view.process) == (2, "x")
    assert view.slots == {"b": 1}
    assert list(view.markers.values()) == [MARKER]
    assert view.batches == {("s1", 2, 2): {"n": 2}}
