"""Raw records as a source gives them."""

import json
from collections.abc import Sequence

import pyarrow as pa

from kaflow_engine.flow.records import HEADERS, RECORDS


def records(topic: str, values: Sequence[dict[str, str]], partition: int = 0) -> pa.Table:
    """Records of one partition with offsets from 0, keyed by `id`, all at 1 s."""
    count = len(values)
    return pa.table(
        [
            pa.array([topic] * count, pa.string()),
            pa.array([partition] * count, pa.int32()),
            pa.array(range(count), pa.int64()),
            pa.array([1000] * count, pa.int64()),
            pa.array([value["id"].encode() for value in values], pa.binary()),
            pa.array([json.dumps(value).encode() for value in values], pa.binary()),
            pa.nulls(count, HEADERS),
        ],
        schema=RECORDS,
    )
