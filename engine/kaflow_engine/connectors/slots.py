"""The delivery partitions among the rows of a task: what a sink promises, it promises for each."""

import numpy as np
import pyarrow as pa

from kaflow_engine.flow.records import SLOT

Places = np.ndarray[tuple[int], np.dtype[np.int64]]


def slots_of(rows: pa.Table) -> dict[int, Places]:
    """Return the places of the rows of each delivery partition."""
    slots = rows[SLOT].to_numpy()
    order = np.argsort(slots, kind="stable")
    found, starts = np.unique(slots[order], return_index=True)
    return dict(zip(found.tolist(), np.split(order, starts)[1:], strict=True))
