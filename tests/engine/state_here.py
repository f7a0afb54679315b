"""State directories as runs leave them."""

from pathlib import Path

from kaflow_engine.flow.flow import Flow
from kaflow_engine.operators.watermark import Mark, WatermarkState
from kaflow_engine.runtime.planning.plan_codec import fingerprint, plan_text
from kaflow_engine.state.log.batch_log import BatchLog, BatchRecord, CommitRecord, StateRecord
from kaflow_engine.state.storage.store import LocalStore

MARK = 1_767_225_600_000
"""The watermark after each batch."""


def write_state(
    directory: Path, plan: Flow, batches: int = 0, *, opened: bool = False, state_id: str = "s"
) -> BatchLog:
    """Write the state that a run of so many batches leaves.

    Args:
        directory: Of the pipeline.
        plan: What has run.
        batches: How many were committed.
        opened: Whether one more was begun.
        state_id: Of the state.
    """
    log, mark = BatchLog(LocalStore(directory)), fingerprint(plan)
    log.save_plan(mark, plan_text(plan))
    log.create_state(
        StateRecord(
            state_id=state_id,
            generation=1,
            partitions=plan.partitions,
            created_ms=0,
            start={},
            dimension_ends={},
            schemas={t.name: {c.name: c.type for c in t.columns} for t in plan.sources},
            fingerprint=mark,
        )
    )
    for number in range(1, batches + 1 + opened):
        log.begin(
            BatchRecord(
                number=number,
                epoch=1,
                plan=mark,
                batch_time=0,
                watermark={},
                ranges={},
                read_to_end=(),
                bounded_end=False,
            )
        )
        if number <= batches:
            watermark = WatermarkState(marks={0: Mark(value=MARK)}).to_json()
            log.commit(
                CommitRecord(number=number, epoch=1, changes={}, watermark=watermark, next_due={})
            )
    return log
