"""Files and folders → all pipelines of a project."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from kaflow_engine.errors import ModelError, UnknownName
from kaflow_engine.model.config import Config
from kaflow_engine.model.configuration.preprocessors import rewriter
from kaflow_engine.model.configuration.shared_topics import shared_topics
from kaflow_engine.model.configuration.streamling.plugins import find_plugins
from kaflow_engine.model.files.variables import Allowed, variables_of_authors
from kaflow_engine.model.files.yaml_file import raise_as_found
from kaflow_engine.model.front_ends import FRONT_ENDS
from kaflow_engine.model.pipelines.contract import (
    FrontEnd,
    FunctionKindOf,
    Surroundings,
    no_function,
)
from kaflow_engine.model.pipelines.loader import Reading
from kaflow_engine.model.search.search import Search, project_files
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
        ModelError: A preprocessor of the configuration is not there, or no plugin where it says.
    """
    given = config or Config()
    find_plugins(given)
    known = variables_of_authors(given.env, given.file) if variables is None else variables
    configuration = Path(given.file).resolve() if given.file else None
    search = Search(variables=known, configuration=configuration, rewrite=rewriter(given))
    for path in map(Path, paths):
        if path.is_dir():
            search.folder(path)
        else:
            search.file(path)
    for folder in _project_folders(paths):
        for file in sorted(project_files(folder)):
            search.near(file)
    readings, around, others = _lowered(search, given, function_kind)
    named = [reading.spec for reading in readings if reading.spec and reading.name]
    return ProjectFiles(
        readings=readings,
        others=(*others, *_same_names(named)),
        around=around,
        unused=tuple(search.unused) if search.configuration is None else (),
    )


def _lowered(
    search: Search, config: Config, function_kind: FunctionKindOf
) -> tuple[tuple[Reading, ...], tuple[Reading, ...], tuple[ModelError, ...]]:
    readings: list[Reading] = []
    around: list[Reading] = []
    mistakes = [*search.mistakes]
    topics = shared_topics(config)
    for end in FRONT_ENDS:
        known = [each.spec for each in (*readings, *around) if each.spec and each.name]
        surroundings = Surroundings(
            pipelines=known,
            variables=config.vars,
            environment=_variables_of(search.variables, end),
            function_kind=function_kind,
            topics=topics,
        )
        found = end.lower(search.files.get(end.name, ()), surroundings)
        readings += (replace(reading, front_end=end.name) for reading in found.readings)
        around += (replace(reading, front_end=end.name) for reading in found.around)
        mistakes += found.mistakes
    return tuple(readings), tuple(around), tuple(mistakes)


def _variables_of(known: Mapping[str, str], end: FrontEnd) -> Mapping[str, str]:
    return known.beside(end.variables) if isinstance(known, Allowed) else known


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
