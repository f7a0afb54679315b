"""The delivery partitions among the rows of a task: what a sink promises, it promises for each."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.flow.records import SLOT

Places = np.ndarray[tuple[int], np.dtype[np.int64]]


def slots_of(rows: pa.Table) -> dict[int, Places]:
    """Return the places of the rows of each delivery partition."""
    slots = rows[SLOT].to_numpy()
    return {
        int(slot): np.flatnonzero(np.equal(slots, slot))
        for slot in pc.unique(rows[SLOT]).to_pylist()
    }
