"""Which types files of each format hold, and which values can be part of the name of a folder."""

from collections.abc import Iterator, Sequence
from typing import assert_never

from kaflow_engine.connectors.contract import Settings, Unfit
from kaflow_engine.errors import ModelError
from kaflow_engine.formats.contract import format_of
from kaflow_engine.formats.types import INTEGERS, Decimal, List, Map, Scalar, Struct, Type
from kaflow_engine.formats.types import parse_type as read
from kaflow_engine.model.columns import Column

_LARGE = frozenset({"HUGEINT", "UHUGEINT"})
_PARQUET = (INTEGERS.keys() - _LARGE) | frozenset(
    "BOOLEAN FLOAT DOUBLE VARCHAR BLOB DATE TIME UUID JSON".split()
)
_FOLDERS = INTEGERS.keys() | frozenset({"BOOLEAN", "VARCHAR", "DATE", "UUID"})


def unfit(columns: Sequence[Column], settings: Settings) -> list[Unfit]:
    """Return what a folder cannot hold, and columns by which it is parted that are none."""
    return [*_unfit(columns, settings)]


def _unfit(columns: Sequence[Column], settings: Settings) -> Iterator[Unfit]:
    parted, known = parted_by(settings), {column.name: column for column in columns}
    for name in parted:
        column = known.get(name)
        if column is None:
            why = f"'partition_by' names '{name}', which is no column of the rows"
            yield Unfit(why=why, hint=f"known: {', '.join(known)}")
        elif not _is_named(read(column.type)):
            why = f"no folder can be called by column '{name}': it is {column.type}"
            yield Unfit(why=why, hint=f"write a column such as CAST({name} AS VARCHAR), or a date")
    period = settings.get("partition")
    for column in columns:
        if period and column.name.lower() == f"_{period}":
            why = f"column '{column.name}' is called as the folders of 'partition: {period}' are"
            yield Unfit(why=why, hint="give it another name")
    inside = [column for column in columns if column.name not in parted]
    if not inside:
        why = "no column is left for the files: 'partition_by' names all of them"
        yield Unfit(why=why, hint="name fewer; what names a folder is not in its files")
    yield from _in_files(inside, str(settings["format"]))


def _in_files(columns: Sequence[Column], form: str) -> Iterator[Unfit]:
    for column in columns:
        if form == "parquet":
            large = _large(read(column.type))
            if not _in_parquet(read(column.type)):
                to = "DECIMAL(38, 0)" if large else "VARCHAR"
                yield Unfit(
                    why=f"Parquet has no type for column '{column.name}': it is {column.type}",
                    hint=f"write CAST({column.name} AS {to}) AS {column.name}",
                )
            continue
        try:
            format_of(form).schema_of([column], "rows")
        except ModelError as error:
            yield Unfit(why=error.message, hint="cast it to VARCHAR, or write JSON or Parquet")


def parted_by(settings: Settings) -> tuple[str, ...]:
    """Return the columns by which a folder is parted."""
    names = settings.get("partition_by")
    return tuple(str(names).split(",")) if names else ()


def _is_named(kind: Type) -> bool:
    """Tell whether the texts of a type are names."""
    return isinstance(kind, Scalar) and (kind.name in _FOLDERS or kind.name.startswith("ENUM("))


def _large(kind: Type) -> bool:
    return isinstance(kind, Scalar) and kind.name in _LARGE


def _in_parquet(kind: Type) -> bool:
    match kind:
        case Scalar(name=name):
            return name in _PARQUET or name.startswith(("ENUM(", "TIMESTAMP"))
        case Decimal():
            return True
        case List(element=element):
            return _in_parquet(element)
        case Struct(fields=fields):
            return all(_in_parquet(field) for _, field in fields)
        case Map(key=key, value=value):
            return _in_parquet(key) and _in_parquet(value)
        case _:
            assert_never(kind)
