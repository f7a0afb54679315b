"""Rows on their way into a table: texts to typed columns, each row with its partition."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from kaflow_engine.duck.queries import query
from kaflow_engine.operators.rows.row_text import columns_of, unpack

if TYPE_CHECKING:
    import pyarrow as pa  # planning needs the names only, and it takes long to load

    from kaflow_engine.flow.sinks import TableParams

EVENT_TIME = "_event_time"
"""Column of every table: the event time of the row's driving record, or the start of its window."""

GROUP = "_group"
"""Column of a table of windows: the key of the row's group, with the start of its window."""

SOURCE = ("_source_partition", "_source_offset")
"""Columns of a table whose rows are made of one record each: which one of the driving topic."""

_START = r'"window_start":(-?\d+)\}$'
"""How the key of a group with a window ends."""

LARGE = frozenset({"HUGEINT", "UHUGEINT"})
"""Types with values of more digits than a table keeps: the row of such a value is a dead letter."""

_FORMATS = {"day": "%Y-%m-%d", "hour": "%Y-%m-%d-%H"}
_LENGTHS = {"day": timedelta(days=1), "hour": timedelta(hours=1)}


def own_columns(grouped: bool, partition: str) -> tuple[str, ...]:
    """Return the columns that a table has beside those that are selected.

    >>> own_columns(True, "day")
    ('_event_time', '_group', '_day')
    """
    return (EVENT_TIME, *((GROUP,) if grouped else SOURCE), partition_column(partition))


def partition_column(partition: str) -> str:
    """Return the name of the column by which a table is partitioned.

    >>> partition_column("day")
    '_day'
    """
    return f"_{partition}"


def length_of(partition: str) -> int:
    """Return how many milliseconds a partition covers."""
    return round(_LENGTHS[partition].total_seconds() * 1000)


def partition_of(at: int, partition: str) -> str:
    """Return the partition of an event time in epoch milliseconds; partitions are in UTC.

    >>> partition_of(1_767_229_200_000, "hour")
    '2026-01-01-01'
    """
    return datetime.fromtimestamp(at / 1000, UTC).strftime(_FORMATS[partition])


def last_over(at: int, partition: str) -> str:
    """Return the newest partition that is over at an instant in epoch milliseconds.

    >>> last_over(1_767_229_199_999, "hour"), last_over(1_767_229_200_000, "hour")
    ('2025-12-31-23', '2026-01-01-00')
    """
    return partition_of(at - length_of(partition), partition)


def partitions_between(start: int, end: int, partition: str) -> list[str]:
    """Return the partitions of a range of event time, which begins and ends with one.

    >>> partitions_between(1_767_225_600_000, 1_767_232_800_000, "hour")
    ['2026-01-01-00', '2026-01-01-01']
    """
    return [partition_of(at, partition) for at in range(start, end, length_of(partition))]


def is_whole(at: int, partition: str) -> bool:
    """Tell whether a partition begins at a time in epoch milliseconds."""
    return at % length_of(partition) == 0


def typed_rows(table: "TableParams", rows: "pa.Table") -> "pa.Table":
    """Return what a table keeps, in the order of the rows.

    Args:
        table: Which one.
        rows: Schema OUTPUT; values are texts.

    Returns:
        The columns of the table, `_event_time` (timestamp[us, UTC]), `_source_partition` (int32)
        and `_source_offset` (int64), or of windows `_group` (string), and the partition (string).
    """
    names = ", ".join(columns_of("texts", table.columns))
    kind = _FORMATS[table.partition]
    identity: tuple[str, ...] = SOURCE
    at = "timestamp"
    made_of = f"source_partition AS {SOURCE[0]}, source_offset AS {SOURCE[1]}"
    if table.grouped:
        identity = (GROUP,)
        at = f"CAST(regexp_extract(decode(key), '{_START}', 1) AS BIGINT)"
        made_of = f"decode(key) AS {GROUP}"
    return query(
        f"SELECT {names}, make_timestamptz(ts * 1000) AS {EVENT_TIME}, {', '.join(identity)}, "
        f"strftime(make_timestamp(ts * 1000), '{kind}') AS {partition_column(table.partition)} "
        f"FROM (SELECT {unpack('decode(value)')} AS texts, {at} AS ts, {made_of} FROM rows)",
        rows,
    )
