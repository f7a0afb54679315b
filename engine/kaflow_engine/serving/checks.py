"""Files that say what is served, checked without their databases."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kaflow_engine.errors import Location, ModelError, Problems
from kaflow_engine.model.brought.settings import Opening
from kaflow_engine.model.config import Config
from kaflow_engine.model.configuration.with_brought import closed
from kaflow_engine.model.files.variables import variables_of_authors
from kaflow_engine.model.files.yaml_file import raise_all, read_text
from kaflow_engine.model.search.search import project_files
from kaflow_engine.model.sqlflow.front_end import SqlflowFiles
from kaflow_engine.model.sqlflow.serving.files import is_serve_file, serves
from kaflow_engine.model.sqlflow.serving.reading import ServeFile, read_serve_file
from kaflow_engine.serving.datasets import Dataset
from kaflow_engine.serving.statements import datasets_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Serve:
    """What a file serves, checked as far as that is possible without its databases."""

    file: ServeFile
    datasets: Mapping[str, Dataset]
    readable: tuple[Path, ...]
    """Files that SQL may read, and folders with all that is below."""


def check_serve_file(
    path: Path, config: Config, environment: Mapping[str, str] | None = None
) -> Serve:
    """Read a file, and check all that can be checked without its databases.

    Args:
        path: Where it stands.
        config: Which databases may be attached, and secrets.
        environment: Variables that it may use; None: those that the configuration allows.

    Raises:
        ModelError: Something in it is wrong, or it says nothing of what is served.
        Problems: Several things are wrong.
    """
    text = read_text(path)
    if not is_serve_file(text):
        hint = "write serve: {auth: …, datasets: […]}; pipelines are run by `kaflow run`"
        raise ModelError("this file does not say what is served", Location(str(path)), hint)
    variables = environment
    if variables is None:
        known = variables_of_authors(config.env, config.file)
        variables = known.beside(SqlflowFiles.variables)
    file = read_serve_file(path, text, variables, config.secrets)
    openings = [Opening(kind=each.kind, at=each.at) for each in file.attached.values()]
    raise_all(closed(config, openings))
    readable = tuple(Path(each).resolve() for each in config.sql.read)
    return Serve(file=file, datasets=datasets_of(file), readable=readable)


def serve_files(paths: Sequence[Path]) -> list[Path]:
    """Return which of some files, and of those in some folders, say what is served."""
    files = [file for path in paths for file in (project_files(path) if path.is_dir() else [path])]
    return [file for file in files if file.suffix in SqlflowFiles.endings and serves(file)]


def mistakes_of(path: Path, config: Config) -> tuple[ModelError, ...]:
    """Return what is wrong in a file that says what is served."""
    try:
        check_serve_file(path, config)
    except Problems as problems:
        return problems.errors
    except ModelError as mistake:
        return (mistake,)
    return ()
