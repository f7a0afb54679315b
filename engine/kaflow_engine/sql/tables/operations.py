"""What records say that they do to rows: insert, update or delete."""

from sqlglot import exp, parse_one

from kaflow_engine.duck.quoting import identifier, literal
from kaflow_engine.flow.tables import UNKNOWN_OPERATION
from kaflow_engine.model.record_columns import HEADERS, NULL_VALUE
from kaflow_engine.sql.syntax import DIALECT

HEADER, COLUMN = "header:", "column:"
"""How `operation` begins."""
OP = "_op"
"""What queries call the operation of a row: `i`, `u` or `d`."""


def operation_sql(alias: str, said: str | None) -> str | None:
    """Return SQL of `i`, `u` or `d`; it fails on what is no operation."""
    if said is None:
        return None
    name = said.removeprefix(HEADER).removeprefix(COLUMN)
    value = f"CAST({identifier(f'{alias}.{name}')} AS VARCHAR)"
    if said.startswith(HEADER):
        headers = identifier(f"{alias}.{HEADERS}")
        value = f"decode({headers}[{literal(name)}])"
    return (
        f"CASE coalesce({value}, 'i') WHEN 'i' THEN 'i' WHEN 'c' THEN 'i' WHEN 'r' THEN 'i' "
        f"WHEN 'u' THEN 'u' WHEN 'd' THEN 'd' "
        f"ELSE error({literal(UNKNOWN_OPERATION)} || {value}) END"
    )


def change_of(alias: str, said: str) -> exp.Expr:
    """Return the operation of a row of changes: a record without value deletes."""
    null = identifier(f"{alias}.{NULL_VALUE.name}")
    sql = f"CASE WHEN {null} THEN 'd' ELSE {operation_sql(alias, said)} END"
    return parse_one(sql, dialect=DIALECT)
