"""Files and folders → all pipelines of a project."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from kaflow_engine.errors import Location, ModelError, UnknownName
from kaflow_engine.model.config import Config
from kaflow_engine.model.configuration.load_config import FILES
from kaflow_engine.model.configuration.preprocessors import rewriter
from kaflow_engine.model.files.variables import variables_of_authors
from kaflow_engine.model.files.yaml_file import Rewrite, raise_as_found, read_yaml
from kaflow_engine.model.front_ends import DEFAULT, FRONT_ENDS, front_end_of
from kaflow_engine.model.pipelines.contract import (
    FrontEnd,
    FunctionKindOf,
    SourceFile,
    Surroundings,
    no_function,
)
from kaflow_engine.model.pipelines.front_end import SUFFIXES
from kaflow_engine.model.pipelines.kinds import holds_configuration
from kaflow_engine.model.pipelines.loader import Reading
from kaflow_engine.model.specs import PipelineSpec

FOLDERS = ("pipelines", "models")
"""Where a project keeps its pipelines; what stands in one may refer to what stands in the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """All pipelines, by name, and the configuration they share."""

    pipelines: tuple[PipelineSpec, ...]
    config: Config = field(default_factory=Config)
    notices: tuple[ModelError, ...] = ()
    """What is doubtful, and in no file alone."""

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
        paths: As `read_project` takes them.
        config: The configuration; the file it was read from is not a pipeline.
        variables: Values for `${VAR}`; None: those that the configuration allows.

    Raises:
        ModelError: A file holds a mistake, is missing, or no file was found.
        Problems: There are several mistakes, in one or more files.
    """
    settings = config or Config()
    files = read_project(paths, settings, variables)
    raise_as_found(files.mistakes)
    return Project(pipelines=files.pipelines, config=settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectFiles:
    """All files that hold a pipeline, right or wrong."""

    readings: tuple[Reading, ...]
    """In the order in which they were found."""
    others: tuple[ModelError, ...]
    """What is wrong with paths, and between files."""
    around: tuple[Reading, ...] = ()
    """Pipelines of the same project that no one asked for."""
    unused: tuple[Path, ...] = ()
    """Configurations in the folders, where none was chosen."""

    @property
    def mistakes(self) -> tuple[ModelError, ...]:
        """All mistakes of form, file by file."""
        of_files = [mistake for reading in self.readings for mistake in reading.mistakes]
        return (*of_files, *self.others)

    @property
    def pipelines(self) -> tuple[PipelineSpec, ...]:
        """Those whose form is right, by name."""
        sound = [each.spec for each in self.readings if each.spec and not each.mistakes]
        return tuple(sorted(sound, key=lambda pipeline: pipeline.name))


def read_project(
    paths: Sequence[Path],
    config: Config | None = None,
    variables: Mapping[str, str] | None = None,
    function_kind: FunctionKindOf = no_function,
) -> ProjectFiles:
    """Read all pipeline files, and go on where one holds mistakes.

    Args:
        paths: Files, and folders that are searched for the files of each front end. Folders whose
            name starts with a dot are left out, and so are the configuration, and what no front
            end takes for its own, such as case files.
        config: The configuration; the file it was read from is not a pipeline.
        variables: Values for `${VAR}`; None: those that the configuration allows.
        function_kind: Knows the functions of the project.

    Raises:
        ModelError: A preprocessor of the configuration is not there.
    """
    given = config or Config()
    known = variables_of_authors(given.env, given.file) if variables is None else variables
    configuration = Path(given.file).resolve() if given.file else None
    search = _Search(variables=known, configuration=configuration, rewrite=rewriter(given))
    for path in map(Path, paths):
        if path.is_dir():
            search.folder(path)
        else:
            search.file(path)
    for folder in _project_folders(paths):
        for file in sorted(_files(folder)):
            search.near(file)
    readings, around, others = _lowered(search, config.vars if config else {}, function_kind)
    named = [reading.spec for reading in readings if reading.spec and reading.name]
    return ProjectFiles(
        readings=readings,
        others=(*others, *_same_names(named)),
        around=around,
        unused=tuple(search.unused) if search.configuration is None else (),
    )


def _lowered(
    search: "_Search", variables: Mapping[str, object], function_kind: FunctionKindOf
) -> tuple[tuple[Reading, ...], tuple[Reading, ...], tuple[ModelError, ...]]:
    readings: list[Reading] = []
    around: list[Reading] = []
    mistakes = [*search.mistakes]
    for end in FRONT_ENDS:
        known = [each.spec for each in (*readings, *around) if each.spec and each.name]
        surroundings = Surroundings(
            pipelines=known,
            variables=variables,
            environment=search.variables,
            function_kind=function_kind,
        )
        found = end.lower(search.files.get(end.name, ()), surroundings)
        readings += found.readings
        around += found.around
        mistakes += found.mistakes
    return tuple(readings), tuple(around), tuple(mistakes)


@dataclass(slots=True, kw_only=True)
class _Search:
    """The files found so far, by front end; a file is read once, however often it is reached."""

    variables: Mapping[str, str]
    configuration: Path | None
    rewrite: Rewrite | None
    files: dict[str, list[SourceFile]] = field(default_factory=dict[str, list[SourceFile]])
    mistakes: list[ModelError] = field(default_factory=list[ModelError])
    unused: list[Path] = field(default_factory=list[Path])
    seen: dict[Path, bool] = field(default_factory=dict[Path, bool])
    """File → whether it holds a pipeline."""

    def folder(self, folder: Path) -> None:
        holds_any = False
        for file in sorted(_files(folder)):
            holds_any |= self._take(file, "found")
        if not holds_any:
            examples = ", ".join(end.example for end in FRONT_ENDS)
            hint = f"files of pipelines have names such as {examples}"
            at = Location(str(folder))
            self.mistakes.append(ModelError("no pipeline in this folder", at, hint))

    def file(self, file: Path) -> None:
        if self._is_configuration(file):
            at = Location(str(file))
            hint = "name the files or folders of pipelines behind it"
            self.mistakes.append(ModelError("this is the configuration, not a pipeline", at, hint))
        else:
            self._take(file, "named")

    def near(self, file: Path) -> None:
        """Take a file that no one asked for; what is wrong in it does not matter."""
        if not self._is_configuration(file):
            self._take(file, "near")

    def _take(self, path: Path, standing: Literal["named", "found", "near"]) -> bool:
        """Give a file to the front end that knows it; return whether it holds a pipeline."""
        real = path.resolve()
        if self.seen.get(real):
            return True
        file = self._read(path, standing)
        root = file.document.root if file.document else None
        if standing == "found" and (
            self._is_configuration(path) or (root is not None and holds_configuration(root))
        ):
            self.unused.append(path)
            return False
        roles = {end.name: role for end in _candidates(path) if (role := end.role(file))}
        if not roles and standing == "named":
            roles = {DEFAULT.name: "pipeline"}
        if len(roles) > 1 and file.wanted:
            self.mistakes.append(_ambiguous(path, list(roles)))
        if not roles:
            return False
        if len(roles) > 1:
            self.seen[real] = True
            return True
        ((name, role),) = roles.items()
        if real not in self.seen:
            self.files.setdefault(name, []).append(file)
        self.seen[real] = role == "pipeline"
        return role == "pipeline"

    def _read(self, path: Path, standing: Literal["named", "found", "near"]) -> SourceFile:
        if _candidates(path) and not path.name.endswith(SUFFIXES):
            return SourceFile(path=path, standing=standing)
        try:
            rewrite = self.rewrite if front_end_of(path.name) is DEFAULT else None
            document = read_yaml(path, self.variables, rewrite=rewrite)
        except ModelError as mistake:
            return SourceFile(path=path, standing=standing, mistake=mistake)
        return SourceFile(path=path, standing=standing, document=document)

    def _is_configuration(self, file: Path) -> bool:
        return file.name in FILES or file.resolve() == self.configuration


def _ambiguous(path: Path, names: Sequence[str]) -> ModelError:
    return ModelError(
        f"this could be each of: {', '.join(names)}",
        Location(str(path)),
        "remove the keys that belong to the other one",
    )


def _files(folder: Path) -> Iterator[Path]:
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
            if _candidates(file):
                yield file


def _candidates(file: Path) -> list[FrontEnd]:
    """Return the front ends with the longest ending that the name of a file has."""
    found = {
        end: max((len(each) for each in end.endings if file.name.endswith(each)), default=0)
        for end in FRONT_ENDS
    }
    longest = max(found.values())
    return [end for end, length in found.items() if length == longest > 0]


def _project_folders(paths: Sequence[Path]) -> list[Path]:
    """Return the folders of pipelines and models that belong together with some paths."""
    found: dict[Path, None] = {}
    for path in paths:
        here = Path(path).absolute()
        inside = next((each for each in (here, *here.parents) if each.name in FOLDERS), None)
        if inside is not None:
            found |= {inside.parent / name: None for name in FOLDERS}
    return [folder for folder in found if folder.is_dir()]


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
