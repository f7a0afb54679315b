"""Types of the values by which rows of a database are looked up."""

from collections.abc import Sequence

from kaflow_engine.duck import binding
from kaflow_engine.errors import Location, SqlError
from kaflow_engine.flow.origins.databases import AttachedParams
from kaflow_engine.flow.transforms import IN, LookupParams
from kaflow_engine.model.columns import Column
from kaflow_engine.sql.groups.shapes import TransformShape

_NO_KEYS = ("BLOB", "JSON", "STRUCT", "MAP")
"""Types whose values find nothing in a database."""


def check_lookup(transform: TransformShape, given: Sequence[Column], at: Location | None) -> None:
    """Refuse a look-up by values that the columns of the table cannot equal.

    Args:
        transform: The look-up; other transforms are let through.
        given: The columns of the rows that go into it.
        at: Where it stands.

    Raises:
        SqlError: A value is of another type than its column, or of one that finds nothing.
    """
    params = transform.params
    if not isinstance(params, LookupParams):
        return
    outers = {column.name: column.type for column in given}
    inners = {column.name: column.type for column in params.types}
    for number, name in enumerate(params.on):
        outer, inner = outers[f"{IN}$on{number}"], inners[name]
        if not _finds(params.table, inner):
            raise SqlError(
                f"column '{name}' of '{transform.name}' is {inner}, of which {params.table.type} "
                "has texts in several forms: rows cannot be found by it",
                at,
                f"write columns: {{{name}: VARCHAR, …}} in sources.{transform.name}, and compare "
                "its text; or join by another column",
            )
        if _can_equal(outer, inner):
            continue
        raise SqlError(
            f"column '{name}' of '{transform.name}' is {inner}, and is compared with {outer}",
            at,
            "join by another column"
            if _bare(inner) in _NO_KEYS
            else f"write CAST(… AS {inner}) around the other side, or join by another column",
        )


def _finds(table: AttachedParams, inner: str) -> bool:
    """Tell whether a database finds rows by a type; one without equality is let through."""
    kind = _bare(inner)
    no_scalar = kind in _NO_KEYS or kind.endswith("]")
    return no_scalar or not table.finds_by or kind in table.finds_by


def _can_equal(outer: str, inner: str) -> bool:
    """Tell whether values of two types can be equal in a database."""
    try:
        if "VARCHAR" not in (outer, inner):
            binding.bind(f"SELECT coalesce(NULL::{outer}, NULL::{inner}) AS x")
    except binding.Error:
        return False
    kinds = (_bare(outer), _bare(inner))
    return not any(kind in _NO_KEYS or kind.endswith("]") for kind in kinds)


def _bare(kind: str) -> str:
    return kind.partition("(")[0]
