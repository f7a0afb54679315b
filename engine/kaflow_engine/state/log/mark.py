"""The batch mark: a digest that differs for batches of one number in copied states."""

import json
from hashlib import sha256

from kaflow_engine.state.log.batch_log import BatchRecord
from kaflow_engine.state.log.by_chain import to_stored


def batch_mark(batch: BatchRecord) -> str:
    """Return a digest of all that is equal when a batch runs again, and of nothing else.

    Fields are named one by one: one that a later version adds must not change older marks.
    """
    same = {
        "number": batch.number,
        "plan": batch.plan,
        "batch_time": batch.batch_time,
        "watermark": to_stored(batch.watermark),
        "ranges": batch.ranges,
        "read_to_end": sorted(batch.read_to_end),
        "bounded_end": batch.bounded_end,
    }
    return sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()[:16]
