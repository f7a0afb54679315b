"""Errors of PostgreSQL: what each calls for, by its SQLSTATE."""

from kaflow_engine.errors import SinkAway, SinkUnfit


class PostgresAway(SinkAway):
    """The server does not answer, or cannot take it now: it may heal."""


class PostgresUnfit(SinkUnfit):
    """The table, the login or its rights are not what the pipeline needs: someone must act."""


AWAY = ("08", "40", "53", "55", "57", "58", "25P03", "25006")
"""Beginnings of codes: connection, serialization and deadlock, resources, locks, shutdown and
timeouts, the system; an idle session that was ended; a server that is read-only for a time.

https://www.postgresql.org/docs/current/errcodes-appendix.html
"""
OF_ROWS = ("22", "23", "P0")
"""Values out of range, constraints, and what triggers raise: they are about rows."""


def is_away(code: str) -> bool:
    """Tell whether trying again may help."""
    return code.startswith(AWAY)


def is_of_rows(code: str) -> bool:
    """Tell whether a row is the cause."""
    return code.startswith(OF_ROWS)
