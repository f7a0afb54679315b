"""Where rows of decoded records come from: their place in the order, and their event time."""

from typing import Any

import numpy as np
import pyarrow as pa

from kaflow_engine.formats.pick import pick
from kaflow_engine.operators.rows.task import BatchContext
from kaflow_engine.operators.source.decode import Intake


def places_of(
    intake: Intake, batch: BatchContext, found: pa.Table, timed: pa.Table
) -> dict[str, Any]:
    """Return TRIGGER, ORIGIN and `ts` of rows, each of which is its own driving record.

    Args:
        intake: What was read of the topic.
        batch: Which batch.
        found: Rows with `rn`.
        timed: `rn`, `$time` and `$ts` of at least these rows, by `rn`.
    """
    numbers = found.column("rn").to_numpy()
    known = timed.column("rn").to_numpy()
    rows = pa.array(np.searchsorted(known, numbers)) if len(numbers) else pa.array([], pa.int64())
    times = pick(timed["$time"], rows)
    records = pick(intake.records.select(["partition", "offset"]), found["rn"])
    partition = records.column("partition").cast(pa.int64())
    offset = records.column("offset")
    constants = {
        "t_phase": 1,
        "t_role": intake.topic.rank,
        "t_topic": intake.topic.index,
        "d_batch": batch.batch,
    }
    return {
        **{
            name: pa.repeat(pa.scalar(value, pa.int64()), found.num_rows)
            for name, value in constants.items()
        },
        "t_time": times,
        "t_part": partition,
        "t_off": offset,
        "d_time": times,
        "d_part": partition,
        "d_off": offset,
        "ts": pick(timed["$ts"], rows),
    }
