"""COPY of the rows of a batch into a bucket, as an output of files."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from kaflow_engine.errors import KaflowError, Location
from kaflow_engine.model.sqlflow.lowering.said import Mistakes, SqlText
from kaflow_engine.model.sqlflow.lowering.statements import parsed, statements

_TARGET = re.compile(r"\bTO\s+'(?P<scheme>\w+)://", re.IGNORECASE)
_FORMATS = {"parquet": "parquet", "csv": "csv"} | dict.fromkeys(("json", "ndjson", "jsonl"), "json")
_TAKEN = (
    *("FORMAT", "PARTITION_BY", "COMPRESSION", "CODEC", "HEADER", "ROW_GROUP_SIZE"),
    *("OVERWRITE_OR_IGNORE", "OVERWRITE", "APPEND", "FILENAME_PATTERN"),
)
"""The first two are options of an output of files; it does as the others ask without them."""
_LOADER = (
    "COPY into a folder of command.connections.default.folders, from which a loader takes them; or "
    "into s3://, or write an iceberg sink, whose warehouse may be a bucket"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """An output of files."""

    folder: str
    format: str
    partition_by: tuple[str, ...] = ()


def copied(sql: SqlText, rows: str, variables: Sequence[str], mistakes: Mistakes) -> Copied | None:
    """Return what a sink copies into a bucket; None: it does something else, or it is wrong.

    Args:
        sql: The statements of the sink.
        rows: What they call the rows of a batch.
        variables: Texts that another one stands for in each batch.
        mistakes: What is wrong is added.
    """
    target = _TARGET.search(sql.text)
    if target is None:
        return None
    at = sql.line(sql.text.count("\n", 0, target.start("scheme")) + 1)
    if target["scheme"].lower() not in ("s3", "s3a"):
        mistakes.add(f"files are not copied to {target['scheme']}://", at, _LOADER)
        return None
    tree = _only(sql)
    if tree is None or not _is_whole(tree.this, rows):
        mistakes.add(
            "a sink that copies into a bucket copies whole batches, and does nothing else",
            at,
            f"write COPY {rows} TO 's3://<bucket>/<folder>/$id.parquet' (FORMAT parquet), and "
            "select in the handler",
        )
        return None
    return _files(tree, variables, at, mistakes)


def _files(
    copy: exp.Copy, variables: Sequence[str], at: Location, mistakes: Mistakes
) -> Copied | None:
    """Return where the files of a COPY lie, and what they are."""
    options = {param.name.upper(): param.expression for param in copy.args.get("params") or ()}
    for name in sorted(options.keys() - set(_TAKEN)):
        mistakes.add(
            f"COPY into a bucket has no option {name}",
            at,
            f"there are {', '.join(_TAKEN[:2])}; others are not needed",
        )
    path = "s3://" + copy.args["files"][0].name.partition("://")[2]
    parts = _names(options.get("PARTITION_BY"))
    folder, _, name = (path, "", "") if parts else path.rpartition("/")
    if any(variable in folder for variable in variables):
        mistakes.add(
            "the folder of files in a bucket is the same for all batches",
            at,
            "let the substitution be in the name of the file",
        )
    elif not parts and not any(variable in name for variable in variables):
        mistakes.add(
            f"'{name}' would be written over by each batch",
            at,
            "write $id in its name, and substitutions: [{var: $id, type: uuid4}]",
        )
    said = options["FORMAT"].name if "FORMAT" in options else name.rpartition(".")[2]
    form = _FORMATS.get(said.lower())
    if form is None:
        mistakes.add(f"files of a bucket are not written as '{said}'", at, "write FORMAT parquet")
        return None
    return Copied(folder=folder, format=form, partition_by=parts)


def _names(columns: exp.Expr | None) -> tuple[str, ...]:
    if columns is None:
        return ()
    return tuple(one.name for one in columns.expressions) or (columns.name,)


def _only(sql: SqlText) -> exp.Copy | None:
    """Return the one statement, if it is a COPY."""
    try:
        found = list(statements(sql))
    except KaflowError:
        return None
    tree = parsed(found[0]) if len(found) == 1 else None
    return tree if isinstance(tree, exp.Copy) else None


def _is_whole(what: exp.Expr, rows: str) -> bool:
    """Tell whether a COPY takes the rows of a batch as they are."""
    if isinstance(what, exp.Subquery) and isinstance(what.this, exp.Select):
        select = what.this
        said = {name for name, value in select.args.items() if value} - {"expressions", "from_"}
        if said or [type(one) for one in select.expressions] != [exp.Star]:
            return False
        what = select.args["from_"].this
    return isinstance(what, exp.Table) and what.sql(dialect="duckdb") == rows
