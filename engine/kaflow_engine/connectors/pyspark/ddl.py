"""Schemas of PySpark that are texts: read here, for PySpark asks its JVM, which may not run yet."""

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from kaflow_engine.errors import ModelError
from kaflow_engine.model.columns import Column


def columns_of_ddl(text: str) -> tuple[Column, ...]:
    """Return the columns of a schema, with DuckDB's types.

    Raises:
        ModelError: It is none.

    >>> columns_of_ddl("id INT, `at` timestamp, parts array<struct<n: decimal(9,2)>>")[1:]
    (Column(name='at', type='TIMESTAMPTZ'), Column(name='parts', type='STRUCT(n DECIMAL(9, 2))[]'))
    """
    whole = text if text.strip().lower().startswith("struct<") else f"STRUCT<{text}>"
    try:
        tree = sqlglot.parse_one(whole, dialect="spark", into=exp.DataType)
    except SqlglotError as error:
        raise ModelError("it is no list of columns with types") from error
    return tuple(_column(each) for each in tree.expressions)


def _column(tree: exp.Expr) -> Column:
    kind = tree.args.get("kind") if isinstance(tree, exp.ColumnDef) else None
    if kind is None:
        raise ModelError(f"'{tree.sql(dialect='spark')}' is no column with its type")
    return Column(tree.name, kind.sql(dialect="duckdb"))
