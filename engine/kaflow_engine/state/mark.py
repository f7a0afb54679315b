"""What tells a batch from another one of the same number, such as one of a copied state."""

import json
from dataclasses import asdict, replace
from hashlib import sha256

from kaflow_engine.state.log import BatchRecord


def batch_mark(batch: BatchRecord) -> str:
    """Return a digest of all that is equal when a batch runs again, and of nothing else."""
    same = asdict(replace(batch, epoch=0, generation=0))
    return sha256(json.dumps(same, sort_keys=True).encode()).hexdigest()[:16]
