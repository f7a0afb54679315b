"""The log that a stream leaves, without a run."""
# pyright: basic

from kaflow_engine.flow.chains.chain import chains
from kaflow_engine.operators.watermark import Mark, WatermarkState
from kaflow_engine.runtime.planning.plan_codec import fingerprint, plan_text
from kaflow_engine.state.log.batch_log import BatchLog, BatchRecord, CommitRecord, StateRecord
from kaflow_engine.state.storage.store import LocalStore


def write_stream(folder, plan, ran_with=None, after=None, due=None, batches=True):
    """Write the log of a stream that has run one batch; times are of chain 0, or by chain."""
    numbers = [chain.number for chain in chains(plan)]
    marks = {n: Mark(value=by_chain(after).get(n)) for n in numbers}
    log, mark = BatchLog(LocalStore(folder)), fingerprint(plan)
    log.save_plan(mark, plan_text(plan))
    log.create_state(
        StateRecord(
            state_id="s",
            generation=1,
            partitions=1,
            created_ms=0,
            start={"events": {0: 2}},
            dimension_ends={},
            schemas={},
            fingerprint=mark,
        )
    )
    if batches:
        log.begin(
            BatchRecord(
                number=1,
                epoch=1,
                plan=mark,
                batch_time=0,
                watermark=by_chain(ran_with),
                ranges={"events": {0: (2, 7)}},
                read_to_end=(),
                bounded_end=False,
            )
        )
        log.commit(
            CommitRecord(
                number=1,
                epoch=1,
                changes={},
                watermark=WatermarkState(marks=marks).to_json(),
                next_due=by_chain(due),
            )
        )


def by_chain(time):
    """Return times by chain: those that are given, or one of chain 0."""
    if isinstance(time, dict):
        return time
    return {} if time is None else {0: time}
