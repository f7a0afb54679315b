"""Files and folders → all pipelines of a project."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kaflow_engine.errors import Location, ModelError, Problems, UnknownName
from kaflow_engine.model.config import Config
from kaflow_engine.model.load_config import FILES
from kaflow_engine.model.loader import load_pipeline
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.model.variables import read_environment

SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """All pipelines, by name, and the configuration they share."""

    pipelines: tuple[PipelineSpec, ...]
    config: Config = field(default_factory=Config)

    def pipeline(self, name: str) -> PipelineSpec:
        """Return the pipeline of this name.

        Raises:
            UnknownName: There is none.
        """
        for pipeline in self.pipelines:
            if pipeline.name == name:
                return pipeline
        raise UnknownName("pipeline", name, [pipeline.name for pipeline in self.pipelines])


def load_project(
    paths: Sequence[Path],
    config: Config | None = None,
    variables: Mapping[str, str] | None = None,
) -> Project:
    """Read all pipeline files.

    Args:
        paths: Files, and folders that are searched for `*.yaml` and `*.yml`. Folders whose name
            starts with a dot are left out, and so is the configuration.
        config: The configuration; the file it was read from is not a pipeline.
        variables: Values for `${VAR}`; None: the environment.

    Raises:
        ModelError: A file holds a mistake, is missing, or no file was found.
        Problems: There are several mistakes, in one or more files.
    """
    known = read_environment() if variables is None else variables
    settings = config or Config()
    mistakes: list[ModelError] = []
    pipelines: list[PipelineSpec] = []
    for path in _distinct(paths, settings, mistakes):
        try:
            pipelines.append(load_pipeline(path, known))
        except ModelError as mistake:  # the other files are read all the same
            mistakes += mistake.errors if isinstance(mistake, Problems) else (mistake,)
    mistakes += _same_names(pipelines)
    if len(mistakes) == 1:
        raise mistakes[0]
    if mistakes:
        raise Problems(mistakes)
    by_name = sorted(pipelines, key=lambda pipeline: pipeline.name)
    return Project(pipelines=tuple(by_name), config=settings)


def _distinct(paths: Sequence[Path], config: Config, mistakes: list[ModelError]) -> Iterator[Path]:
    configuration = Path(config.file).resolve() if config.file else None
    seen: set[Path] = set()
    for given in map(Path, paths):
        at = Location(str(given))
        files = [given] if not given.is_dir() else sorted(_files(given, configuration))
        if not files:
            hint = "a pipeline is a file that ends in .yaml or .yml"
            mistakes.append(ModelError("no pipeline in this folder", at, hint))
        elif _is_configuration(given, configuration):
            hint = "name it with --config; a pipeline is a file of its own"
            mistakes.append(ModelError("this is the configuration, not a pipeline", at, hint))
            continue
        for file in files:
            if (real := file.resolve()) not in seen:
                seen.add(real)
                yield file


def _is_configuration(file: Path, configuration: Path | None) -> bool:
    return file.name in FILES or (configuration is not None and file.resolve() == configuration)


def _files(folder: Path, configuration: Path | None) -> Iterator[Path]:
    visited: set[Path] = set()
    for parent, folders, names in os.walk(folder, followlinks=True):
        real = Path(parent).resolve()
        if real in visited:
            folders.clear()  # a link leads back here
            continue
        visited.add(real)
        # A volume mounted by Kubernetes holds every file a second time in `..data`.
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in names:
            file = Path(parent) / name
            if name.endswith(SUFFIXES) and not _is_configuration(file, configuration):
                yield file


def _same_names(pipelines: Sequence[PipelineSpec]) -> Iterator[ModelError]:
    for key in ("name", "id"):
        first: dict[str, PipelineSpec] = {}
        for pipeline in pipelines:
            value = pipeline.name if key == "name" else pipeline.id
            other = first.setdefault(value, pipeline)
            if other is pipeline or (key == "id" and other.name == pipeline.name):
                continue
            yield ModelError(
                f"two pipelines have the same {key}: here and at {other.place(key)}",
                pipeline.place(key),
                f"give one of them another {key}",
            )
