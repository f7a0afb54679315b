"""A progress in which everything is known."""

from kaflow_engine.measures import Measure, Series
from kaflow_engine.telemetry.progress import CheckpointMark, Progress, SideOutputCount

FULL = Progress(
    pipeline="p",
    state="running",
    batch=7,
    batch_records=120,
    batch_ms=250.0,
    records=840,
    records_per_second=99.5,
    lag={"events": 30, "profiles": 0},
    counters={
        "read": 800,
        "emitted": 700,
        "waiting": 60,
        "expired": 40,
        "late": 2,
        "late_rows": 4,
        "lost": 3,
    },
    watermark=1_767_225_600_000,
    batch_time=1_767_225_660_000,
    phases={"task.run.0": 40.0, "task.read.0": 10.0},
    newest={"events": 1_767_225_630_000},
    holder=("events", 1),
    holder_at=1_767_225_600_000,
    waited=600_000,
    lookups={"profiles": (200, 150)},
    sizes={"1:profiles": (5_000, 123_456)},
    busy=0.75,
    steps={"sql": 400.0, "input": 100.0},
    written={"out": 701},
    spent={"input": 1_000.0, "sql": 4_000.0, "state_read": 500.0, "produce": 2_000.0},
    batches=6,
    paused=12.0,
    empty_batches=3,
    empty_streak=2,
    checkpoint=CheckpointMark(batch=6, created_ms=1_767_225_000_000, bytes=654_321, failures=1),
    letters=5,
    measured=(
        *{
            Series("count", "source_records", (("topic", "events"),)): Measure(800),
            Series("count", "source_bytes", (("topic", "events"),)): Measure(64_000),
            Series("time", "transform", (("kind", "handler"), ("transform", "scored"))): Measure(
                1.5, 4
            ),
            Series(
                "count", "transform_rows", (("kind", "handler"), ("transform", "scored"))
            ): Measure(90),
            Series(
                "count", "transform_results", (("kind", "handler"), ("transform", "scored"))
            ): Measure(87),
            Series(
                "count", "transform_failures", (("kind", "handler"), ("transform", "scored"))
            ): Measure(3),
            Series(
                "count",
                "handler_requests",
                (("outcome", "retried"), ("status", "5xx"), ("transform", "scored")),
            ): Measure(6),
            Series("time", "sink", (("output", "records"),)): Measure(2.5, 7),
            Series("count", "sink_refused", (("output", "records"),)): Measure(1),
            Series("count", "plugin_acme_seen_hits", (("zone", "b"),)): Measure(12),
            Series("level", "plugin_acme_seen_keys"): Measure(5),
            Series("time", "plugin_acme_seen_call", (("zone", "b"),)): Measure(0.5, 2),
        }.items(),
    ),
    received=(
        *{
            Series("count", "receiver_records", (("source", "hooks"),)): Measure(40),
            Series("count", "receiver_bytes", (("source", "hooks"),)): Measure(4_000),
            Series("count", "receiver_requests", (("source", "hooks"), ("status", "401"))): Measure(
                2
            ),
            Series("count", "receiver_full", (("source", "hooks"),)): Measure(8),
            Series("count", "receiver_failures", (("source", "hooks"),)): Measure(9),
            Series("level", "journal_records", (("source", "hooks"),)): Measure(140),
            Series("level", "journal_waiting", (("source", "hooks"),)): Measure(30),
            Series("level", "journal_bytes", (("source", "hooks"),)): Measure(9_000),
        }.items(),
    ),
    side_outputs=(SideOutputCount(output="o", plugin="acme.audit", rows=700, missed=9),),
)
