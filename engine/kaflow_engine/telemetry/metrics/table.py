"""The table of metrics: names, labels, and how each is read from the progress of a pipeline."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import get_args

from kaflow_engine.telemetry.metrics.measured import MEASURED
from kaflow_engine.telemetry.metrics.spec import MetricSpec, Values
from kaflow_engine.telemetry.progress import CLASSES, CheckpointMark, Progress
from kaflow_engine.telemetry.status import CONDITIONS, condition, lag_seconds, waiting_seconds
from kaflow_engine.telemetry.verdict import VerdictKind, judge


def _one(value: float | None) -> Values:
    return () if value is None else [((), value)]


def _pairs(values: Mapping[str, tuple[int, int]], place: int) -> Values:
    return [((name,), both[place]) for name, both in values.items()]


def _hit_rates(at: Progress) -> Values:
    return [((topic,), hits / rows) for topic, (rows, hits) in at.lookups.items() if rows]


def _lag_seconds(at: Progress) -> Values:
    now = time.time()
    found = ((topic, lag_seconds(at, topic, now)) for topic in at.lag)
    return [((topic,), seconds) for topic, seconds in found if seconds is not None]


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


def _holder(at: Progress) -> Values:
    return [] if at.holder is None else [((at.holder[0], str(at.holder[1])), 1.0)]


def _watermark_delay(at: Progress) -> float | None:
    if at.watermark is None or at.batch_time is None:
        return None
    return max((at.batch_time - at.watermark) / 1000, 0.0)


def _checkpoint(at: Progress, value: Callable[[CheckpointMark], float]) -> Values:
    return _one(value(at.checkpoint) if at.checkpoint and at.checkpoint.created_ms else None)


def _flags(names: Iterable[str], current: str) -> Values:
    return [((name,), float(name == current)) for name in names]


def _counted(name: str, text: str, counter: str) -> MetricSpec:
    return MetricSpec(name, "counter", text, (), lambda at: _one(at.counters.get(counter, 0)))


METRICS: tuple[MetricSpec, ...] = (
    MetricSpec(
        "kaflow_pipeline_state",
        "gauge",
        "1 for the state that the pipeline is in.",
        ("state",),
        lambda at: _flags(CONDITIONS, condition(at)),
    ),
    MetricSpec(
        "kaflow_verdict",
        "gauge",
        "1 for the reason why the pipeline is idle or slow.",
        ("verdict",),
        lambda at: _flags(get_args(VerdictKind), judge(at).kind),
    ),
    _counted(
        "kaflow_events_processed_total",
        "Records of the driving topic that were read since the state was created.",
        "read",
    ),
    MetricSpec(
        "kaflow_events_per_second",
        "gauge",
        "Records of all topics read per second, over the last seconds.",
        (),
        lambda at: _one(at.records_per_second),
    ),
    MetricSpec(
        "kaflow_records",
        "gauge",
        "Driving records by what became of them; the outcomes add up to the events processed.",
        ("outcome",),
        lambda at: [((name,), at.counters.get(name, 0)) for name in CLASSES],
    ),
    MetricSpec(
        "kaflow_rows_delivered_total",
        "counter",
        "Rows that this process has written to its outputs.",
        (),
        lambda at: _one(at.delivered),
    ),
    MetricSpec(
        "kaflow_dead_letters_total",
        "counter",
        "Dead letters that this process has written.",
        (),
        lambda at: _one(at.letters),
    ),
    *MEASURED,
    MetricSpec(
        "kaflow_side_output_rows_total",
        "counter",
        "Rows that this process has shown to a side output.",
        ("output", "plugin"),
        lambda at: [((e.output, e.plugin), e.rows) for e in at.side_outputs],
    ),
    MetricSpec(
        "kaflow_side_output_missed_total",
        "counter",
        "Rows on which a side output failed in this process; they have left all the same.",
        ("output", "plugin"),
        lambda at: [((e.output, e.plugin), e.missed) for e in at.side_outputs],
    ),
    _counted(
        "kaflow_late_records_total",
        "Records behind the watermark since the state was created.",
        "late",
    ),
    _counted(
        "kaflow_late_rows_total",
        "Rows whose windows were all closed since the state was created.",
        "late_rows",
    ),
    _counted(
        "kaflow_lost_records_total",
        "Offsets that were gone before they were read (on_data_loss: continue).",
        "lost",
    ),
    MetricSpec(
        "kaflow_lag_records",
        "gauge",
        "Offsets that were there at the last batch and are not read yet.",
        ("topic",),
        lambda at: [((topic,), lag) for topic, lag in at.lag.items()],
    ),
    MetricSpec(
        "kaflow_lag_seconds",
        "gauge",
        "Age of the newest record read of a topic with unread ones; 0 where all is read.",
        ("topic",),
        _lag_seconds,
    ),
    MetricSpec(
        "kaflow_watermark_timestamp_seconds",
        "gauge",
        "The watermark, in epoch seconds.",
        (),
        lambda at: _one(_seconds(at.watermark)),
    ),
    MetricSpec(
        "kaflow_watermark_delay_seconds",
        "gauge",
        "How far the watermark is behind the clock of the last batch.",
        (),
        lambda at: _one(_watermark_delay(at)),
    ),
    MetricSpec(
        "kaflow_watermark_holder",
        "gauge",
        "1 for the partition that holds the watermark where it is.",
        ("topic", "partition"),
        _holder,
    ),
    MetricSpec(
        "kaflow_join_lookups_total",
        "counter",
        "Rows that left a join in this process.",
        ("topic",),
        lambda at: _pairs(at.lookups, 0),
    ),
    MetricSpec(
        "kaflow_join_hits_total",
        "counter",
        "Rows that left a join with a match in this process.",
        ("topic",),
        lambda at: _pairs(at.lookups, 1),
    ),
    MetricSpec(
        "kaflow_join_hit_rate",
        "gauge",
        "Share of the rows that left a join with a match.",
        ("topic",),
        _hit_rates,
    ),
    MetricSpec(
        "kaflow_waiting_rows",
        "gauge",
        "Driving records that wait for a match.",
        (),
        lambda at: _one(at.waiting),
    ),
    MetricSpec(
        "kaflow_waiting_oldest_seconds",
        "gauge",
        "Age of the oldest row that waits, in event time; no sample where none waits.",
        (),
        lambda at: _one(waiting_seconds(at)),
    ),
    MetricSpec(
        "kaflow_state_entries_total",
        "untyped",
        "Entries of the state, as RocksDB estimates them, of the partitions used so far.",
        ("operator",),
        lambda at: _pairs(at.sizes, 0),
    ),
    MetricSpec(
        "kaflow_state_size_bytes",
        "gauge",
        "Bytes of the state's files, of the partitions used so far.",
        ("operator",),
        lambda at: _pairs(at.sizes, 1),
    ),
    _counted(
        "kaflow_state_evictions_total",
        "Driving records whose time was up before they were complete.",
        "expired",
    ),
    MetricSpec(
        "kaflow_batch_number",
        "gauge",
        "The last batch that was committed.",
        (),
        lambda at: _one(at.batch),
    ),
    MetricSpec(
        "kaflow_batch_records",
        "gauge",
        "Records of that batch.",
        (),
        lambda at: _one(at.batch_records),
    ),
    MetricSpec(
        "kaflow_batch_phase_seconds",
        "gauge",
        "Seconds that tasks spent on each step, in the batches of the last seconds.",
        ("phase",),
        lambda at: [((step,), ms / 1000) for step, ms in at.steps.items()],
    ),
    MetricSpec(
        "kaflow_busy_ratio",
        "gauge",
        "Share of the last seconds in which a batch ran.",
        (),
        lambda at: _one(at.busy),
    ),
    MetricSpec(
        "kaflow_checkpoint_batch",
        "gauge",
        "The batch of the newest checkpoint.",
        (),
        lambda at: _checkpoint(at, lambda mark: mark.batch),
    ),
    MetricSpec(
        "kaflow_checkpoint_timestamp_seconds",
        "gauge",
        "When its snapshot was taken, in epoch seconds.",
        (),
        lambda at: _checkpoint(at, lambda mark: mark.created_ms / 1000),
    ),
    MetricSpec(
        "kaflow_checkpoint_size_bytes",
        "gauge",
        "Bytes of its files, those it shares with earlier ones included.",
        (),
        lambda at: _checkpoint(at, lambda mark: mark.bytes),
    ),
    MetricSpec(
        "kaflow_checkpoint_failures_total",
        "counter",
        "Checkpoints that this process could not write.",
        (),
        lambda at: _one(at.checkpoint and at.checkpoint.failures),
    ),
    MetricSpec(
        "kaflow_failures",
        "gauge",
        "Failures in a row; 0 while the pipeline runs.",
        (),
        lambda at: _one(at.failures),
    ),
    MetricSpec("kaflow_processing_duration_seconds", "histogram", "Duration of micro-batches."),
    MetricSpec(
        "kaflow_sql_execution_duration_seconds",
        "histogram",
        "Time that the tasks of a micro-batch spent computing, summed over tasks.",
    ),
)
"""All metrics; each has the label `pipeline`."""
