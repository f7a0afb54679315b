"""Databases in memory that statements run in, each for one request at a time."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event

import duckdb
import pyarrow as pa

from kaflow_engine.duck.files import open_among
from kaflow_engine.duck.parsing import Complaint, complaint, parse
from kaflow_engine.duck.quoting import identifier, literal
from kaflow_engine.errors import ModelError, RunError, SourceUnfit, SqlError
from kaflow_engine.model.sqlflow.lowering.commands import Attached
from kaflow_engine.serving.datasets import Statement
from kaflow_engine.serving.encode import rows_json, type_name
from kaflow_engine.serving.reads import Read
from kaflow_engine.serving.tables import Table, table_of

_NO_JSON = ("BIGNUM", "BIT")
_AT_ONCE = 1_000
"""Rows of a batch."""


class Late(Exception):
    """A statement was stopped: it took too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A statement that can be run, and the tables that it reads of other databases."""

    statement: Statement
    tables: tuple[Table, ...]
    files: tuple[str, ...]
    """Names of DuckDB files that it reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Rows of an answer."""

    columns: tuple[tuple[str, str], ...]
    """Names and types."""
    rows: bytes
    """JSON."""
    count: int
    truncated: bool
    """Whether there were more."""


class Session:
    """A database in memory, which can read nothing but what is attached and what the configuration
    lets it read; its statements write nothing."""

    def __init__(self, attached: Mapping[str, Attached], readable: Sequence[Path]) -> None:
        self._attached = attached
        self._late = Event()
        files = [each.where for each in attached.values() if each.kind == "duckdb"]
        named = [str(path) for path in readable if not path.is_dir()]
        folders = [f"{path}/" for path in readable if path.is_dir()]
        self._connection = open_among([*files, *named], folders)

    def prepare(self, statement: Statement) -> Prepared:
        """Look at the tables of a statement, and let DuckDB bind it.

        Raises:
            SqlError: It cannot be bound.
            SourceError: A table cannot be read.
        """
        sql = statement.bound.lower()
        files = (n for n, each in self._attached.items() if each.kind == "duckdb" and n in sql)
        prepared = Prepared(
            statement=statement,
            tables=tuple(_looked_at(each, self._attached) for each in statement.reads),
            files=tuple(files),
        )
        try:
            with self._opened(prepared):
                for table in prepared.tables:
                    table.create(self._connection)
                found = self._connection.execute(f"DESCRIBE {statement.bound}", _nulls(statement))
                _check_columns(statement, [(str(n), str(kind)) for n, kind, *_ in found.fetchall()])
        except duckdb.Error as error:
            raise _of_sql(statement, error) from error
        return prepared

    def run(self, prepared: Prepared, values: Mapping[str, object], most_rows: int) -> Result:
        """Run a statement.

        Args:
            prepared: By this session, or another one of the same databases.
            values: Of its parameters, by name.
            most_rows: How many rows an answer has at most.

        Raises:
            Late: It was stopped.
            SourceError: A table cannot be read.
            RunError: Its SQL fails.
        """
        self._late.clear()
        try:
            with self._opened(prepared):
                for table in prepared.tables:
                    table.fill(self._connection, values)
                if self._late.is_set():
                    raise Late
                return self._rows(prepared.statement, values, most_rows)
        except duckdb.InterruptException as error:
            raise Late from error
        except duckdb.Error as error:
            raise RunError(complaint(error).text, prepared.statement.sql.at) from error

    def stop(self) -> None:
        """Stop what runs, from any thread."""
        self._late.set()
        self._connection.interrupt()

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

    def _rows(self, statement: Statement, values: Mapping[str, object], most_rows: int) -> Result:
        found = self._connection.execute(statement.bound, dict(values))
        columns = tuple((str(n), type_name(str(kind))) for n, kind, *_ in found.description)
        batches: list[pa.RecordBatch] = []
        count = 0
        with found.to_arrow_reader(_AT_ONCE) as reader:
            for batch in reader:
                batches.append(batch.slice(0, max(most_rows - count, 0)))
                count += batch.num_rows
                if count > most_rows:
                    break  # what is behind is not calculated
        return Result(
            columns=columns,
            rows=rows_json(batches, [name for name, _ in columns]),
            count=min(count, most_rows),
            truncated=count > most_rows,
        )

    @contextmanager
    def _opened(self, prepared: Prepared) -> Generator[None]:
        """Attach files while they are read: in between others can write or replace them."""
        names: list[str] = []
        try:
            for name in prepared.files:
                path = literal(self._attached[name].where)
                self._connection.execute(f"ATTACH {path} AS {identifier(name)} (READ_ONLY)")
                names.append(name)
            for name in dict.fromkeys(table.read.database for table in prepared.tables):
                self._connection.execute(f"ATTACH ':memory:' AS {identifier(name)}")
                names.append(name)
            yield
        finally:
            for name in names:
                self._connection.execute(f"DETACH {identifier(name)}")


def _looked_at(read: Read, attached: Mapping[str, Attached]) -> Table:
    table = table_of(read, attached[read.database])
    try:
        return replace(table, columns=table.rows.columns())
    except SourceUnfit as error:
        if "no type" in error.message:
            error.hint = (
                "read a view, in which it is cast to a type that has so many digits, or text"
            )
        raise


def _nulls(statement: Statement) -> dict[str, None]:
    parsed = parse(statement.bound)
    assert not isinstance(parsed, Complaint)
    return dict.fromkeys(parsed[0].parameters)


def _check_columns(statement: Statement, columns: Sequence[tuple[str, str]]) -> None:
    names = [name for name, _ in columns]
    twice = next((name for n, name in enumerate(names) if name in names[:n]), None)
    if twice is not None:
        message = f"two columns are called '{twice}'"
        raise SqlError(message, statement.sql.at, f"write … AS another_{twice}")
    for name, kind in columns:
        if kind in _NO_JSON:
            message = f"the column '{name}' is {kind}, for which there is no JSON"
            raise SqlError(message, statement.sql.at, f"write CAST({name} AS VARCHAR) AS {name}")


def _of_sql(statement: Statement, error: duckdb.Error) -> ModelError:
    said = complaint(error)
    hint = f"this is {statement.where}, whose SQL is DuckDB's"
    if isinstance(error, duckdb.PermissionException):
        hint = "allow it by a line in kaflow.yaml: sql: {read: [PATH]}, or by --allow read=PATH"
    return SqlError(said.text, statement.sql.line(said.line or 1), hint)
