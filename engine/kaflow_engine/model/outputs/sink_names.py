"""Names in the settings of sinks: which texts are names there, and what is said of others."""

import re
from typing import TypeVar

from kaflow_engine.model.names import refuse

T = TypeVar("T")
_LONGEST = 63
"""Bytes of a name in Postgres, which cuts longer ones."""


def postgres_table(text: str, key: str = "table") -> str:
    """Return the name of a table in Postgres, with its schema where it has one.

    Args:
        text: What stands there.
        key: Under which key, as the hint says it.

    Raises:
        ValueError: It is none.
    """
    parts = text.split(".")
    if len(parts) > 2 or not all(re.fullmatch(r"[^\s\"'%\\]+", part) for part in parts):
        raise refuse("{value} is not the name of a table", _such_as(key))
    if any(len(part.encode()) > _LONGEST for part in parts):
        raise refuse("{value} is too long", f"Postgres takes names of {_LONGEST} bytes at most")
    return text


def clickhouse_table(text: str, key: str = "table") -> str:
    """Return the name of a table in ClickHouse, with its database where it has one.

    Args:
        text: What stands there.
        key: Under which key, as the hint says it.

    Raises:
        ValueError: It is none.
    """
    parts = text.split(".")
    if len(parts) > 2 or not all(re.fullmatch(r"[^\s\"'`%\\/]{1,200}", part) for part in parts):
        raise refuse("{value} is not the name of a table", _such_as(key))
    return text


def _such_as(key: str) -> str:
    return f"write {key}: orders, or {key}: sales.orders"


def iceberg_table(text: str) -> str:
    """Return the name of a table in a catalog, with its namespace.

    Raises:
        ValueError: It is none.
    """
    parts = text.split(".")
    if len(parts) < 2 or not all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]*", p) for p in parts):
        hint = "write <namespace>.<table>, such as sales.orders: letters, digits, '_' and '-'"
        raise refuse("{value} is not a table of a catalog", hint)
    return text


def ledger_table(text: str) -> str:
    """Return the name of a table, with that of its database.

    Raises:
        ValueError: It is none.
    """
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*){1,2}", text):
        raise refuse(
            "{value} is not a table of a database",
            "write <database>.<table>, such as shop.kaflow_ledger: the database is one that "
            "'setup' of the connection attaches, and the statements write",
        )
    return text


def folder_name(text: str) -> str:
    """Return the name of a folder of the warehouse, or where one of a bucket is.

    Raises:
        ValueError: It is none.
    """
    if "://" in text:
        return _folder_of_bucket(text)
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}", text):
        raise refuse(
            "{value} is not a name for a folder of the warehouse",
            "write a name such as clicks: letters, digits, '.', '_' and '-', at most 200 of them; "
            "`warehouse` in the configuration says where the folder lies",
        )
    return text


def _folder_of_bucket(text: str) -> str:
    folder = text.rstrip("/")
    if not folder.startswith("s3://"):
        raise refuse(
            "{value} is no place for files",
            "write the name of a folder of the warehouse, or s3://<bucket>/<folder>",
        )
    if "@" in folder:
        raise refuse(
            "cannot hold a login",
            "say accessKey and secretKey below state.rocksdb.checkpoint.s3 in the configuration",
        )
    if not re.fullmatch(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9_][\w.=-]*)*", folder):
        raise refuse(
            "{value} is no folder of a bucket",
            "write s3://<bucket>/<folder>: a bucket has 3 to 63 small letters, digits, '.' and "
            "'-'; a folder letters, digits, '.', '_', '-' and '='",
        )
    return folder


def plugin_options(options: dict[str, T]) -> dict[str, T]:
    """Return options of a plugin, none of which is for the configuration to say.

    Raises:
        ValueError: It is none.
    """
    if "connection" in options:
        raise refuse(
            "cannot hold 'connection'",
            "remove it: `plugins` in the configuration says where a plugin connects to",
        )
    return options


def folder_part(text: str) -> str:
    """Return the name of a column that names folders.

    Raises:
        ValueError: It is none.
    """
    if not re.fullmatch(r"(?!\.)[^\x00-\x20\x7f\"#%'*/:=?\\{}\[\]^,]{1,100}", text):
        raise refuse(
            "{value} cannot be part of the name of a folder",
            "select the column under a name of letters, digits and '_'",
        )
    return text
