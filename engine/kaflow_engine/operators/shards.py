"""Which partition a key, a keyless row, or a dead letter belongs to."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyarrow leaves types out

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.formats.duck import query
from kaflow_engine.operators.params import Plan

SHARDS = 256


def part_of_shard(shard: int, partitions: int) -> int:
    """Return the state partition of a shard (0 to 255)."""
    return shard * partitions // SHARDS


def shards_of(part: int, partitions: int) -> range:
    """Return the shards of a state partition."""
    return range(-(-part * SHARDS // partitions), -(-(part + 1) * SHARDS // partitions))


def parts_of(keys: pa.ChunkedArray, keyless: pa.ChunkedArray, partitions: int) -> pa.ChunkedArray:
    """Return the partition of each key behind its shard byte; `keyless` where it is null."""
    rows = pa.table({"key": keys, "keyless": keyless})
    sql = (
        "SELECT CASE WHEN key IS NULL THEN keyless ELSE "
        f"CAST('0x' || left(hex(key), 2) AS BIGINT) * {partitions} // {SHARDS} END AS part FROM rows"
    )
    return query(sql, rows=rows).column("part")


def part_of(keys: pa.ChunkedArray, partitions: int) -> pa.ChunkedArray:
    """Return the partition of each output key (no shard byte); 0 where it is null."""
    sql = (
        f"SELECT coalesce(CAST('0x' || left(md5(key), 2) AS BIGINT) * {partitions} // {SHARDS}, 0) "
        "AS part FROM rows"
    )
    return query(sql, rows=pa.table({"key": keys})).column("part")


def spread(partition: pa.ChunkedArray, offset: pa.ChunkedArray, partitions: int) -> pa.ChunkedArray:
    """Return a partition for rows without a key, the same at every replay."""
    total = pc.add(pc.multiply(partition, 31), offset)
    return pc.subtract(total, pc.multiply(pc.divide(total, partitions), partitions))


def dead_part(topic: int, partition: pa.ChunkedArray, plan: Plan) -> pa.ChunkedArray:
    """Return where a dead letter is delivered: a function of its topic and partition."""
    if plan.stage_count == 1:
        return pc.add(pc.multiply(partition, SHARDS), topic)
    total = pc.add(partition, topic)
    parts = plan.partitions
    return pc.subtract(total, pc.multiply(pc.divide(total, parts), parts))
