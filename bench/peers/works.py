"""The work that all engines do: a pipeline of ours, and the rows that must come."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import duckdb

from bench import pipelines
from bench.feed.data import Fill, clicks_in_windows, kept_clicks
from bench.measure.rows import rows_of
from bench.peers.measure import count_rows
from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.errors import RunError

WORKS = ("w1", "w2", "w3")
"""Filter and project; join with a dimension; count by key in windows."""

_WINDOW_S = 5
_ROW = '{"user_id": "VARCHAR", "start": "BIGINT", "clicks": "BIGINT"}'
_WRITTEN = "CREATE TABLE written (user_id VARCHAR, start BIGINT, clicks BIGINT)"
_LAST = "SELECT user_id, start, max(clicks) AS clicks FROM written GROUP BY ALL"


@dataclass(frozen=True, slots=True, kw_only=True)
class Came:
    """What an engine has written."""

    rows: int
    records: int
    """Of which these rows are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One kind of work."""

    pipeline: Callable[[str, str], str]
    """Gives a file of ours: of its name and topic of rows, and of the topic of clicks."""
    least: int
    """How many rows must come."""
    came: Callable[[KafkaSettings, str], Came]
    """Reads a topic of rows; raises RunError if they are not those that must come."""


def works_over(clicks: Fill) -> dict[str, Work]:
    """Return all of WORKS over the same clicks."""

    def filtering(name: str, topic: str) -> str:
        return pipelines.filtering(name, topic, name)

    def enriching(name: str, topic: str) -> str:
        return pipelines.enriching(name, topic, "profiles", name)

    works = (
        _one_row_each(filtering, kept_clicks(clicks), clicks),
        _one_row_each(enriching, clicks.records, clicks),
        _counts(clicks),
    )
    return dict(zip(WORKS, works, strict=True))


def _one_row_each(pipeline: Callable[[str, str], str], rows: int, clicks: Fill) -> Work:
    def came(kafka: KafkaSettings, topic: str) -> Came:
        found = count_rows(kafka, topic)
        if found != rows:
            raise RunError(f"'{topic}' has {found:,} rows, not {rows:,}")
        return Came(rows=found, records=clicks.records)

    return Work(pipeline=pipeline, least=rows, came=came)


def _counts(clicks: Fill) -> Work:
    """Counts of windows, which may come while a window is open, too, and greater each time."""
    expected = clicks_in_windows(clicks, _WINDOW_S * 1000)

    def counting(name: str, topic: str) -> str:
        return pipelines.counting(name, topic, name, _WINDOW_S)

    def came(kafka: KafkaSettings, topic: str) -> Came:
        with duckdb.connect() as connection:
            connection.register("expected", expected)
            connection.execute(_WRITTEN)
            for records in rows_of(kafka, topic):
                connection.register("records", records)
                connection.execute(
                    "INSERT INTO written SELECT r.user_id, r.start, r.clicks FROM "
                    "(SELECT from_json_strict(decode(value), ?) AS r FROM records)",
                    [_ROW],
                )
            return _compared(connection, topic)

    return Work(pipeline=counting, least=expected.num_rows, came=came)


def _compared(connection: duckdb.DuckDBPyConnection, topic: str) -> Came:
    def one(sql: str) -> Sequence[int]:
        return connection.execute(sql).fetchall()[0]

    rows, different = one("SELECT count(*), count(DISTINCT (user_id, start, clicks)) FROM written")
    if rows != different:
        raise RunError(f"'{topic}' has {rows - different:,} counts twice")
    connection.execute(f"CREATE TABLE last AS {_LAST}")
    (wrong,) = one("SELECT count(*) FROM (FROM expected EXCEPT FROM last)")
    if wrong:
        raise RunError(f"{wrong:,} counts of windows that have ended are not in '{topic}'")
    (records,) = one("SELECT sum(clicks)::BIGINT FROM last")
    return Came(rows=rows, records=records)
