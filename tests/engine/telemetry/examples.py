"""A progress in which everything is known."""

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
    checkpoint=CheckpointMark(batch=6, created_ms=1_767_225_000_000, bytes=654_321, failures=1),
    letters=5,
    side_outputs=(SideOutputCount(output="o", plugin="acme.audit", rows=700, missed=9),),
)
