"""Connections to MySQL and MariaDB, and what their errors call for."""

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from kaflow_engine.errors import SourceUnfit
from kaflow_engine.extras import EXTRAS

if TYPE_CHECKING:
    from pymysql.connections import Connection

_PORT = 3306
_SECONDS = {"connect_timeout": 10, "read_timeout": 60, "write_timeout": 60}
_SETTINGS = ("SET SESSION time_zone = '+00:00'", "SET SESSION TRANSACTION READ ONLY")
_CLIENT = range(2000, 3000)
"""Errors of the way to a server."""
_AWAY = (
    *(1040, 1203, 1226),  # too many connections, or too much asked for
    *(1053, 1077, 1079, 1152, 1158, 1159, 1160, 1161, 1927, 4031),  # it ends, or the connection
    *(1205, 1213, 1317, 1969, 3024),  # locks and deadlines
)
"""Errors of a server that waiting may heal."""


def driver() -> ModuleType:
    """Return the driver.

    Raises:
        SourceUnfit: It is not installed.
    """
    try:
        import pymysql
    except ImportError as error:
        raise SourceUnfit(
            "sources of type mysql need the driver PyMySQL, which is not installed here",
            hint=f"run {EXTRAS['mysql'].install}",
        ) from error
    return pymysql


def connect(settings: Mapping[str, str]) -> "Connection[Any]":
    """Open a connection that may only read, in UTC, and gives values as text; errors are the
    driver's."""
    parts = urlsplit(settings["url"])
    found: Connection[Any] = driver().connect(
        host=parts.hostname,
        port=parts.port or _PORT,
        user=unquote(parts.username or ""),
        password=settings.get("password") or unquote(parts.password or ""),
        database=unquote(parts.path.strip("/")) or None,
        charset="utf8mb4",
        autocommit=True,
        conv={},
        ssl={"ca": settings["ca"]} if "ca" in settings else None,
        **_SECONDS,
    )
    with found.cursor() as cursor:
        for text in _SETTINGS:
            cursor.execute(text)
    return found


def code_and_text(error: Any) -> tuple[int, str]:
    """Return the number of an error, 0 where it has none, and what the server said, on one line."""
    code, *said = error.args if error.args and isinstance(error.args[0], int) else (0, *error.args)
    return code, " ".join(" ".join(map(str, said)).split()) or "the connection was lost"


def is_away(error: Any) -> bool:
    """Tell whether trying again may help."""
    code, _ = code_and_text(error)
    return code == 0 or code in _CLIENT or code in _AWAY
