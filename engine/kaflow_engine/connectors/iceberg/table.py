"""The table of an output: created where that is asked for, else compared with what is written."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from kaflow_engine.connectors.contract import Output
from kaflow_engine.connectors.iceberg.errors import IcebergUnfit
from kaflow_engine.connectors.iceberg.rows import schema_of
from kaflow_engine.connectors.iceberg.types import holds, is_key, written_as
from kaflow_engine.connectors.tables.columns import key_column, written_columns

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table


def name_of(output: Output) -> str:
    """Return the name of the table, with its namespace."""
    return str(output.settings["table"])


def found_table(catalog: "Catalog", output: Output) -> "Table | None":
    """Return the table of an output; None: it is not there, and may be created.

    Raises:
        IcebergUnfit: It does not fit, or is not there and is not to be created.
    """
    from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

    _require_key(output)
    try:
        table = catalog.load_table(name_of(output))
    except (NoSuchTableError, NoSuchNamespaceError):
        if not output.settings.get("create"):
            raise IcebergUnfit(
                f"there is no table '{name_of(output)}' for output '{output.name}'",
                hint="write create: true, or create it",
            ) from None
        return None
    wrong = [*_wrong_columns(output, table.schema())]
    if wrong:
        what = "".join(f"\n  {line}" for line in wrong)
        raise IcebergUnfit(
            f"table '{name_of(output)}' does not take the rows of output '{output.name}':{what}",
            hint="cast in the query, or write another table",
        )
    return table


def _require_key(output: Output) -> None:
    """Refuse keys by which the library finds no rows, or others than DuckDB would."""
    column = key_column(output)
    if column is not None and not is_key(column.type):
        raise IcebergUnfit(
            f"column '{column.name}' cannot be the key of output '{output.name}': it is "
            f"{column.type}",
            hint=f"write CAST({column.name} AS VARCHAR) AS {column.name}",
        )


def _wrong_columns(output: Output, schema: "Schema") -> Iterator[str]:
    there = {field.name: field for field in schema.fields}
    for column in written_columns(output):
        found = there.pop(column.name, None)
        if found is not None and not holds(found.field_type, column.type):
            yield (
                f"its column '{column.name}' is {found.field_type}, which does not hold every "
                f"{column.type} as it is; as {written_as(column.type)} it would"
            )
    for found in there.values():
        if found.required:
            yield f"its column '{found.name}' must have a value, and is not selected"


def ready_table(catalog: "Catalog", output: Output) -> "Table":
    """Return the table of an output, with all of its columns; it or they are created if needed.

    Raises:
        IcebergUnfit: It does not fit, or is not there and is not to be created.
    """
    table = found_table(catalog, output)
    if table is None:
        namespace = name_of(output).rpartition(".")[0]
        catalog.create_namespace_if_not_exists(namespace)
        return catalog.create_table_if_not_exists(name_of(output), schema_of(output))
    there = {field.name for field in table.schema().fields}
    new = [field for field in schema_of(output) if field.name not in there]
    if new:
        with table.update_schema() as update:
            update.union_by_name(pa.schema(new))
    return table


def as_the_table_has_it(output: Output, schema: "Schema", rows: pa.Table) -> pa.Table:
    """Return rows with columns that have a value where the table asks for one.

    Raises:
        IcebergUnfit: A row has none.
    """
    needed = {field.name for field in schema.fields if field.required}
    fields = [field.with_nullable(field.name not in needed) for field in rows.schema]
    for field in fields:
        if not field.nullable and rows[field.name].null_count:
            raise IcebergUnfit(
                f"column '{field.name}' of table '{name_of(output)}' must have a value, and a row "
                f"of output '{output.name}' has none",
                hint="filter such rows in the query, or make the column optional",
            )
    return pa.table(rows.columns, schema=pa.schema(fields))
