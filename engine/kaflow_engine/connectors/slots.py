"""The delivery partitions among the rows of a task: what a sink promises, it promises for each."""

import numpy as np
import pyarrow as pa

from kaflow_engine.flow.records import KEY, SLOT

Places = np.ndarray[tuple[int], np.dtype[np.int64]]


def slots_of(rows: pa.Table) -> dict[int, Places]:
    """Return the places of the rows of each delivery partition."""
    slots = rows[SLOT].to_numpy()
    order = np.argsort(slots, kind="stable")
    found, starts = np.unique(slots[order], return_index=True)
    return dict(zip(found.tolist(), np.split(order, starts)[1:], strict=True))


def last_of_each_key(rows: pa.Table, places: Places) -> Places:
    """Return those places whose rows stay in force, in their order.

    A row whose key is NULL is none of them: it never came, so that it does not go either.
    """
    keys = rows[KEY].to_pylist()
    last = {keys[place]: place for place in places.tolist() if keys[place] is not None}
    return np.array(sorted(last.values()), np.int64)
