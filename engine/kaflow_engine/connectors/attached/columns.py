"""The columns of a table that is looked up: those that are declared, else all."""

from collections.abc import Callable, Mapping

from kaflow_engine.connectors.pages.declared import require_columns
from kaflow_engine.errors import SourceUnfit
from kaflow_engine.flow.origins.databases import AttachedParams
from kaflow_engine.model.columns import Column


def columns_of(
    params: AttachedParams,
    name: str,
    kinds: Mapping[str, str],
    read_as: Callable[[str], str | None],
) -> tuple[Column, ...]:
    """Return the columns of a table.

    Args:
        params: Which table.
        name: Of the source.
        kinds: By column, the type that it has there.
        read_as: Gives for it the type here; None: there is none.

    Raises:
        SourceUnfit: A column is not there, or has no type here.
    """
    what = f"source '{name}'"
    if params.columns:
        names = [column.name for column in params.columns]
        require_columns(params.table, what, names, list(kinds))
        return params.columns
    found: list[Column] = []
    for column, kind in kinds.items():
        own = read_as(kind)
        if own is None:
            raise SourceUnfit(
                f"column '{column}' of table '{params.table}', which {what} reads, is "
                f"{kind or 'declared without a type'}: there is no type for it here",
                hint="declare under `columns` what is read of the table: without "
                f"{column}, or with {column} and a type; VARCHAR takes each value as text",
            )
        found.append(Column(column, own))
    return tuple(found)
