"""Files of SQLFlow that are measured: batches of messages, and a look-up in Postgres."""

from textwrap import dedent, indent

COUNTS = """
    SELECT action, count(*) AS n, sum(amount) AS amount
    FROM batch GROUP BY action ORDER BY action
"""

USERS = """
    SELECT batch.user_id, action, timestamp, {"user_id": users.user_id, "name": users.name} AS user
    FROM batch LEFT JOIN db.users ON batch.user_id = users.user_id
"""

_SOURCE = """\
  source:
    type: kafka
    kafka: {brokers: [localhost:9092], group_id: bench, topics: [clicks]}
    columns:
      {user_id: VARCHAR, action: VARCHAR, timestamp: BIGINT, amount: DOUBLE, sid: VARCHAR}
"""


def counting(name: str, batch: int) -> str:
    """Count and add in batches of so many messages."""
    sink = f"{{type: kafka, kafka: {{brokers: [localhost:9092], topic: {name}}}}}"
    return _file(name, COUNTS, batch, sink)


def looking_up(name: str, url: str) -> str:
    """Join each message with the user that it names; the rows go nowhere.

    Args:
        name: Of the pipeline.
        url: Of a Postgres database with a table `users`.
    """
    attached = f"commands:\n  - sql: ATTACH '{url}' AS db (TYPE POSTGRES, READ_ONLY)\n"
    return attached + _file(name, USERS, 5_000, "{type: noop}")


def _file(name: str, query: str, batch: int, sink: str) -> str:
    sql = indent(dedent(query).strip(), "      ")
    return (
        f"pipeline:\n  name: {name}\n  batch_size: {batch}\n{_SOURCE}"
        f"  handler:\n    type: handlers.InferredMemBatch\n    sql: |\n{sql}\n  sink: {sink}\n"
    )
