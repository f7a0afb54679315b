"""Tables of DuckDB files that are looked up: rows that have some values, each as JSON."""

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass

import duckdb

from kaflow_engine.connectors.attached.columns import columns_of
from kaflow_engine.connectors.attached.contract import (
    KEY,
    KEYS,
    PLACE,
    Bound,
    away,
    unfit,
    where_sql,
)
from kaflow_engine.connectors.attached.files import (
    CORRECT,
    no_database,
    no_table,
    require_file,
)
from kaflow_engine.connectors.duckdb.types import read_as
from kaflow_engine.duck.files import open_file
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.errors import KaflowError
from kaflow_engine.flow.origins.databases import DuckDBParams, SqlParams
from kaflow_engine.formats.json.encode import json_object_sql
from kaflow_engine.model.columns import Column

_FLOATS = ("FLOAT", "DOUBLE")
_TABLES = (
    "SELECT table_name FROM information_schema.tables WHERE table_catalog = current_database()"
)
_LOCKED = re.compile(r"could not set lock .*?(?:\(PID (\d+)\)|$)")
_OTHER, _OTHER_VERSION = "not a valid DuckDB database", "version number"


class DuckDBDatabase:
    """Opens a file for each look, and closes it: in between other processes can write to it."""

    @contextmanager
    def open(
        self, params: DuckDBParams, connection: Mapping[str, str], name: str
    ) -> "Generator[DuckDBTable]":
        """Open a table; DuckDB refuses whatever writes."""
        require_file(params.path, name)
        try:
            with closing(open_file(params.path)) as opened:
                yield _look(opened, params, name)
        except duckdb.Error as error:
            raise _ours(params, name, error) from error


@dataclass(frozen=True, slots=True)
class DuckDBTable:
    """A table of an open file."""

    connection: duckdb.DuckDBPyConnection
    params: DuckDBParams | SqlParams
    kinds: Mapping[str, str]
    """By column, the type that it has there."""
    columns: tuple[Column, ...]

    def check(self) -> None:
        """Let DuckDB bind the condition."""
        rows = f"{_name(self.params)}{where_sql(self.params)}"
        self.connection.execute(f"SELECT 1 FROM {rows} LIMIT 0")

    def find(
        self,
        wanted: Sequence[Column],
        on: Sequence[str],
        keys: Sequence[Sequence[str]],
        *,
        once: bool,
    ) -> list[tuple[int, str]]:
        """Return the rows that have some values."""
        import pyarrow as pa  # planning asks for columns only, and it takes long to load

        texts = {f"{KEY}{n}": pa.array(each) for n, each in enumerate(zip(*keys, strict=True))}
        self.connection.register(KEYS, pa.table({PLACE: pa.array(range(len(keys))), **texts}))
        return self.connection.execute(self._query(wanted, on, once)).fetchall()

    def scan(self, wanted: Sequence[Column], bounds: Sequence[Bound], most: int) -> Iterator[str]:
        """Yield all rows within some bounds."""
        row = json_object_sql([self._field(column.name) for column in wanted])
        conditions = [
            f"{self._value(each.column)} {each.operator} CAST(? AS {self._type(each.column)})"
            for each in bounds
        ]
        rows = f"{_name(self.params)}{where_sql(self.params, conditions)}"
        values = [each.text for each in bounds]
        found = self.connection.execute(f"SELECT {row} FROM {rows} LIMIT {most}", values)
        yield from (each for (each,) in found.fetchall())

    def _query(self, wanted: Sequence[Column], on: Sequence[str], once: bool) -> str:
        equal = " AND ".join(
            f"{self._value(name)} = TRY_CAST({KEYS}.{KEY}{n} AS {self._type(name)})"
            for n, name in enumerate(on)
        )
        row = json_object_sql([self._field(column.name) for column in wanted])
        select = "SELECT DISTINCT" if once else "SELECT"
        return (
            f"{select} {KEYS}.{PLACE}, {row} FROM {KEYS} "
            f"JOIN {_name(self.params)} ON {equal}{where_sql(self.params)}"
        )

    def _field(self, name: str) -> tuple[Column, str]:
        """Return a column, and SQL of its value, from which JSON is made."""
        if self._type(name) in _FLOATS:  # NaN as text: a dead letter, where JSON would say null
            return Column(name, "VARCHAR"), f"CAST({self._value(name)} AS VARCHAR)"
        return Column(name, self._type(name)), self._value(name)

    def _value(self, name: str) -> str:
        return f"CAST({_name(self.params)}.{identifier(name)} AS {self._type(name)})"

    def _type(self, name: str) -> str:
        """Return the type in which a value leaves the file: its text where there is none."""
        return read_as(self.kinds[name]) or "VARCHAR"


def _name(params: DuckDBParams | SqlParams) -> str:
    schema, _, table = params.table.rpartition(".")
    return f"{identifier(schema or 'main')}.{identifier(table)}"


def _look(connection: duckdb.DuckDBPyConnection, params: DuckDBParams, name: str) -> DuckDBTable:
    try:
        found = connection.execute(f"DESCRIBE SELECT * FROM {_name(params)}").fetchall()
    except duckdb.CatalogException as error:
        tables = connection.execute(_TABLES).fetchall()
        raise no_table(params, name, (each for (each,) in tables)) from error
    kinds: dict[str, str] = {column: kind for column, kind, *_ in found}
    return DuckDBTable(connection, params, kinds, columns_of(params, name, kinds, read_as))


def said_by(error: duckdb.Error) -> str:
    """Return what DuckDB says in its first line, as our own errors do."""
    said = str(error).strip().partition("\n")[0].split("Error: ", 1)[-1].rstrip(".!")
    return said[:1].lower() + said[1:]


def _ours(params: DuckDBParams, name: str, error: duckdb.Error) -> KaflowError:
    said = said_by(error)
    if locked := _LOCKED.search(said):
        by = f" ({locked[1]})" if locked[1] else ""
        return away(
            name,
            f"another process{by} has '{params.path}' open to write",
            "let it close the file when it has written, or write another file and rename it to "
            "this one: DuckDB opens a file for one process that writes, or for several that read",
        )
    if _OTHER in said:
        return no_database(params, name, "DuckDB")
    if _OTHER_VERSION in said:
        return unfit(
            name,
            f"DuckDB {duckdb.__version__} cannot read the version of '{params.path}'",
            "install the DuckDB that wrote it, or let that write with an older STORAGE_VERSION",
        )
    if isinstance(error, duckdb.IOException):
        return away(name, said)
    return unfit(name, said, CORRECT)
