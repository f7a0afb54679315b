"""Which partition a key, a keyless row, a record or its dead letter belongs to."""

from hashlib import md5

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.duck.queries import query
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import groups_here, last_level
from kaflow_engine.flow.operators import KeyedJoin

SHARDS = 256


def behind_shard(key: bytes) -> bytes:
    """Return a key behind its shard byte, as `layout.keyed` makes it in SQL."""
    return md5(key, usedforsecurity=False).digest()[:1] + key


def part_of_shard(shard: int, partitions: int) -> int:
    """Return the state partition of a shard (0 to 255)."""
    return shard * partitions // SHARDS


def shards_of(part: int, partitions: int) -> range:
    """Return the shards of a state partition."""
    return range(-(-part * SHARDS // partitions), -(-(part + 1) * SHARDS // partitions))


def parts_of(keys: pa.ChunkedArray, keyless: pa.ChunkedArray, partitions: int) -> pa.Array:
    """Return the partition of each key behind its shard byte; `keyless` where it is null."""
    array = keys.combine_chunks()
    first = first_parts(array, partitions)
    if not array.null_count:
        return pa.array(first)
    return pa.array(np.where(array.is_valid().to_numpy(False), first, keyless.to_numpy()))


def first_parts(
    keys: pa.BinaryArray, partitions: int
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the partition of each key behind its shard byte; any where it is null."""
    return _first_bytes(keys) * partitions // SHARDS


def output_parts(keys: pa.ChunkedArray, partitions: int) -> pa.ChunkedArray:
    """Return the partition of each output key (binary) by its shard; 0 where there is no key."""
    shard = "coalesce(CAST('0x' || left(md5(key), 2) AS BIGINT), 0)"
    sql = f"SELECT {shard} * {partitions} // {SHARDS} AS part FROM rows"
    return query(sql, rows=pa.table({"key": keys}))["part"]


def own_parts(rows: pa.Table, key: str, partitions: int) -> pa.ChunkedArray:
    """Return the partition of each row by the key that it has, which many rows may lack."""
    parts = output_parts(rows[key], partitions)
    if not rows[key].null_count:
        return parts
    others = spread(rows["d_part"], rows["d_off"], partitions)
    return pc.if_else(rows[key].is_valid(), parts, others)


def spread(partition: pa.ChunkedArray, offset: pa.ChunkedArray, partitions: int) -> pa.ChunkedArray:
    """Return a partition for rows without a key, the same at every replay.

    It is that of the shard under which such a row is kept, `offset % 256`.
    """
    return pc.divide(pc.multiply(pc.bit_wise_and(offset, SHARDS - 1), partitions), SHARDS)


def keyless_parts(
    flow: Flow, join: KeyedJoin, partition: pa.ChunkedArray, offset: pa.ChunkedArray
) -> pa.ChunkedArray:
    """Return the partitions of rows of a join that have no key.

    Where they are grouped in its task they are in the place of NULL, the first shard.
    """
    if groups_here(flow, join):
        return pa.chunked_array([pa.array(np.zeros(len(partition), np.int64))])
    return spread(partition, offset, flow.partitions)


def record_part(topic: int, partition: pa.ChunkedArray, flow: Flow) -> pa.ChunkedArray:
    """Return where what no key has addressed is delivered: a function of a record's place."""
    if last_level(flow) == 0:
        return pc.add(pc.multiply(partition, SHARDS), topic)
    total = pc.add(partition, topic)
    parts = flow.partitions
    return pc.subtract(total, pc.multiply(pc.divide(total, parts), parts))


def _first_bytes(array: pa.BinaryArray) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the first byte of each value, anything where it is null."""
    _, offsets, data = array.buffers()
    if data is None or data.size == 0:
        return np.zeros(len(array), np.int64)
    starts = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array)]
    content = np.frombuffer(data, np.uint8)
    return content[np.minimum(starts, len(content) - 1)].astype(np.int64)
