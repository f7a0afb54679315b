"""The databases whose tables can be looked up: a table of names, loaded when they are used."""

from functools import lru_cache
from importlib import import_module

from kaflow_engine.connectors.attached.contract import AttachedDatabase

ATTACHED: dict[str, str] = {
    "duckdb": "kaflow_engine.connectors.duckdb.attached:DuckDBDatabase",
    "mysql": "kaflow_engine.connectors.mysql.attached:MySQLDatabase",
    "postgres": "kaflow_engine.connectors.postgres.attached:PostgresDatabase",
    "sql": "kaflow_engine.connectors.duckdb.made:MadeByStatements",
    "sqlite": "kaflow_engine.connectors.sqlite.attached:SQLiteDatabase",
}
"""`type` of `AttachedParams` → module and class of an `AttachedDatabase`."""


@lru_cache(maxsize=16)
def attached_database(name: str) -> AttachedDatabase:
    """Return the kind of database of a name, imported on first use."""
    module, _, attribute = ATTACHED[name].partition(":")
    found: AttachedDatabase = getattr(import_module(module), attribute)()
    return found
