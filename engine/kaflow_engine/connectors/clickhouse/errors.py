"""Errors of ClickHouse: what each calls for, by its code."""

from kaflow_engine.errors import SinkAway, SinkUnfit


class ClickHouseAway(SinkAway):
    """The server does not answer, or cannot take rows now: it may heal."""


class ClickHouseUnfit(SinkUnfit):
    """The table, the login or its rights are not what the pipeline needs: someone must act."""


class RowsRefused(Exception):
    """The server does not take a block because of a row in it."""

    def __init__(self, error: str, why: str) -> None:
        super().__init__(why)
        self.error, self.why = error, why


AWAY = frozenset(
    {
        *(159, 160, 202, 203, 209, 210, 225, 236, 241, 242, 243, 252, 279, 285, 286, 319, 341),
        *(394, 425, 439, 473, 745, 999, 1000),
    }
)
"""Timeouts, the network, memory and disk, too many queries or parts, replicas and keepers that are
away, shutdown.

https://github.com/ClickHouse/ClickHouse/blob/master/src/Common/ErrorCodes.cpp
"""
OF_ROWS = frozenset({6, 27, 38, 41, 69, 72, 131, 321, 349, 376, 395, 407, 469, 691})
"""Values that a column does not take, constraints, and what `throwIf` raises: of rows."""
OF_LOGIN = frozenset({192, 193, 194, 516})
OF_RIGHTS = frozenset({164, 497})
OF_TABLE = frozenset({16, 47, 53, 60, 81})
"""A table, a column or a database that is not there, or of another type."""


def is_away(status: int, code: int | None) -> bool:
    """Tell whether trying again may help.

    >>> is_away(500, 252), is_away(503, None), is_away(500, 60), is_away(404, None)
    (True, True, False, False)
    """
    if code is not None:
        return code in AWAY
    return status >= 500 or status in (408, 429)
