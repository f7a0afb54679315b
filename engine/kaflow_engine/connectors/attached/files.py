"""What databases have in common that are files."""

from collections.abc import Iterable
from pathlib import Path

from kaflow_engine.connectors.attached.contract import away, unfit
from kaflow_engine.errors import SourceUnfit, UnknownName
from kaflow_engine.flow.origins.databases import DuckDBParams, SQLiteParams

FileParams = SQLiteParams | DuckDBParams
CORRECT = "correct path, table_name, where or columns of the source"


def require_file(path: str, name: str) -> None:
    """Check that the file of a source is there.

    Raises:
        SourceAway: It is not: whoever replaces it may be about to.
        SourceUnfit: It is a folder.
    """
    if Path(path).is_dir():
        raise unfit(name, f"'{path}' is a folder", "write path: of the file itself")
    if not Path(path).exists():
        raise away(
            name,
            f"there is no file '{path}'",
            "correct path: it counts from the folder of the pipeline file; the file must be on "
            "each machine that runs tasks",
        )


def no_database(params: FileParams, name: str, title: str) -> SourceUnfit:
    """Return the error of a file that is something else.

    Args:
        params: Which one.
        name: Of the source.
        title: What the database is called.
    """
    said = f"'{params.path}' is no database of {title}"
    return unfit(name, said, "correct path of the source; a file that is replaced must be whole")


def no_table(params: FileParams, name: str, known: Iterable[str]) -> SourceUnfit:
    """Return the error of a table that a file does not have.

    Args:
        params: Which one.
        name: Of the source.
        known: Tables and views that it has.
    """
    tables = sorted(known)
    near = UnknownName("table", params.table, tables).hint
    return SourceUnfit(
        f"there is no table '{params.table}' for source '{name}' in '{params.path}'",
        hint=near or (f"it has {', '.join(tables)}" if tables else "the file has no table at all"),
    )
