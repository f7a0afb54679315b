"""Compares what a query wrote with what DuckDB says over the same events, all at once."""

import duckdb

from bench.measure.rows import rows_of
from bench.nexmark.events import Events, side_table
from bench.nexmark.feed import ON_THE_WAY, PARTITIONS, partitions
from bench.nexmark.queries import Query
from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.errors import RunError

_SHOWN = 3

_LAST = """
    SELECT value FROM written
    QUALIFY row_number() OVER (PARTITION BY key ORDER BY partition, "offset" DESC) = 1
"""


def check_result(query: Query, made: Events, kafka: KafkaSettings, topic: str) -> int:
    """Compare all rows of a query, and return how many there are.

    Args:
        query: Has run to the end of its topics.
        made: Its events.
        kafka: How to reach the brokers.
        topic: That it wrote.

    Raises:
        RunError: Rows are missing, or there are others.
    """
    with duckdb.connect() as connection:
        for name in ("person", "auction", "bid"):
            connection.register(f"{name}_events", getattr(made, name))
            connection.execute(
                f"CREATE VIEW {name} AS "
                f"SELECT *, dateTime + {ON_THE_WAY} AS arrival FROM {name}_events"
            )
        connection.register("side", side_table())
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET VARIABLE complete = epoch_ms(?)", [_complete(query, made)])
        connection.execute(f"CREATE TABLE expected AS {query.twin}")
        for number, records in enumerate(rows_of(kafka, topic)):
            connection.register("records", records)
            fields = 'key, decode(value) AS value, partition, "offset" FROM records'
            how = "INSERT INTO written" if number else "CREATE TABLE written AS"
            connection.execute(f"{how} SELECT {fields}")
        return _compared(query, connection)


def _compared(query: Query, connection: duckdb.DuckDBPyConnection) -> int:
    columns = connection.sql("DESCRIBE expected").fetchall()
    structure = "{" + ", ".join(f'"{name}": "{kind}"' for name, kind, *_ in columns) + "}"
    rows = _LAST if query.updates else "SELECT value FROM written"
    connection.execute(
        "CREATE TABLE found AS SELECT unnest(from_json_strict(value, ?)) "
        f"FROM ({rows}) WHERE value IS NOT NULL",
        [structure],
    )
    for what, one, other in (("missing", "expected", "found"), ("surplus", "found", "expected")):
        rest = connection.sql(f"FROM {one} EXCEPT ALL FROM {other}")
        (count,) = rest.count("*").fetchall()[0]
        if count:
            shown = "\n".join(str(row) for row in rest.limit(_SHOWN).fetchall())
            raise RunError(f"{query.name}: {count:,} rows are {what}", hint=shown)
    (count,) = connection.sql("FROM found").count("*").fetchall()[0]
    if not count:
        raise RunError(f"{query.name}: there are no rows")
    return count


def _complete(query: Query, made: Events) -> int:
    """Return the time up to which the watermark has come: that of the slowest partition."""
    ends = [
        max(table["dateTime"].to_numpy()[partitions(table) == partition])
        for table in (getattr(made, kind) for kind in query.reads)
        for partition in range(PARTITIONS)
    ]
    return int(min(ends)) + (ON_THE_WAY if query.arrival else 0)
