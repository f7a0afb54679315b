"""Files that SQL reads, and tables that commands make of files and literals: they are looked up."""

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from sqlglot import exp

from kaflow_engine.errors import Location
from kaflow_engine.model.sqlflow.lowering.said import Mistakes, SqlText

_READS = (
    *("read_csv", "read_csv_auto", "read_parquet", "parquet_scan"),
    *("read_json", "read_json_auto", "read_ndjson", "read_ndjson_auto"),
)
"""Functions of DuckDB that read files."""
_MAKES_ROWS = ("range", "generate_series", "unnest")
_IS_FILE = re.compile(r".*\.(csv|tsv|parquet|json|jsonl|ndjson)(\.gz|\.zst)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Static:
    """A table that does not change unless a file does."""

    name: str
    """What its SQL calls it."""
    sql: str
    """Statements that make it."""
    files: tuple[str, ...]
    at: Location

    @property
    def source(self) -> str:
        """What the source is called that stands for it."""
        return f"tables.{self.name}"


def read_file(table: exp.Table, sql: SqlText, mistakes: Mistakes) -> Static | None:
    """Return the table that a reading of a file is; None: it is another one, or is wrong.

    Args:
        table: As it stands in FROM or JOIN.
        sql: Where.
        mistakes: What is wrong is added.
    """
    at = sql.line(_line(table))
    before = len(mistakes.found)
    files = tuple(_files_of(table, sql, mistakes))
    if not files or len(mistakes.found) > before:
        return None
    name = table.alias or PurePath(files[0]).name.partition(".")[0]
    is_function = isinstance(table.this, exp.Func)
    rows = (
        table.this.sql(dialect="duckdb")
        if is_function
        else exp.Literal.string(files[0]).sql(dialect="duckdb")
    )
    quoted = exp.to_identifier(name, quoted=True).sql(dialect="duckdb")
    made = f"CREATE TABLE {quoted} AS FROM {rows}"
    return Static(name=name, sql=made, files=files, at=at)


def files_of_command(
    tree: exp.Expr, target: exp.Table, known: Container[str], sql: SqlText, mistakes: Mistakes
) -> tuple[str, ...]:
    """Return the files that a command reads which fills a table.

    Args:
        tree: The command.
        target: The table.
        known: Tables of commands before it, in lower case.
        sql: Its text.
        mistakes: What it reads beside files and tables of commands is added.
    """
    own = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    found: list[str] = []
    for table in tree.find_all(exp.Table):
        if table is target or (not table.db and table.name.lower() in own):
            continue
        files = list(_files_of(table, sql, mistakes))
        found += files
        is_known = not table.db and table.name.lower() in known
        if not files and not isinstance(table.this, exp.Func) and not is_known:
            mistakes.add(
                f"a command fills '{target.name}' from '{table.name}', which is no file and no "
                "table of a command",
                sql.line(_line(table)),
                "join tables of databases in the handler: FROM batch LEFT JOIN db.table ON …",
            )
    return tuple(dict.fromkeys(found))


def _files_of(table: exp.Table, sql: SqlText, mistakes: Mistakes) -> Iterator[str]:
    """Yield the files that a table is; none: it is no file."""
    function = table.this
    if not isinstance(function, exp.Func):
        if not table.db and _IS_FILE.fullmatch(table.name):
            yield from _checked([table.name], sql.line(_line(table)), mistakes)
        return
    name = (function.name if isinstance(function, exp.Anonymous) else function.sql_name()).lower()
    at = sql.line(_line(table))
    if name in _MAKES_ROWS:
        return
    if name not in _READS:
        mistakes.add(
            f"SQL cannot read by {name}", at, f"there are {', '.join(_READS)}, and FROM 'file.csv'"
        )
        return
    given = function.this if isinstance(function.this, exp.Expr) else None
    given = given or next(iter(function.expressions), None)
    parts = given.expressions if isinstance(given, exp.Array) else [given]
    texts = [each.this for each in parts if isinstance(each, exp.Literal) and each.is_string]
    if len(texts) < len(parts) or not texts:
        mistakes.add(
            f"the file that {name} reads is no text",
            at,
            f"write {name}('file.csv'), or {name}(['a.csv', 'b.csv'])",
        )
        return
    yield from _checked(texts, at, mistakes)


def _checked(files: Sequence[str], at: Location, mistakes: Mistakes) -> Iterator[str]:
    for file in files:
        if "://" in file:
            mistakes.add(
                f"'{file}' is not on this machine",
                at,
                "copy it into a folder; only files are read by SQL",
            )
        elif re.search(r"[*?\[]", file):
            mistakes.add(
                f"'{file}' is a pattern", at, "name each file: read_csv(['a.csv', 'b.csv'])"
            )
        else:
            yield file


def _line(node: exp.Expr) -> int:
    return next((each.meta["line"] for each in node.walk() if "line" in each.meta), 1)
