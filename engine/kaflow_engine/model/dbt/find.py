"""The models of a project: which files they are, and what each says as a pipeline."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.model.dbt.assemble import Models, SqlFile
from kaflow_engine.model.dbt.properties import read_properties
from kaflow_engine.model.files.yaml_file import Document, read_text
from kaflow_engine.model.pipelines.loader import Reading, read_pipeline, unreadable
from kaflow_engine.model.specs import PipelineSpec

MODEL = ".sql"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReadings:
    """What models say as pipelines."""

    readings: tuple[Reading, ...]
    around: tuple[Reading, ...]
    """Those that no one asked for."""
    mistakes: tuple[ModelError, ...]
    """What is wrong in property files, and between files."""


@dataclass(slots=True, kw_only=True)
class ModelFiles:
    """What has been found so far; a file is read once, however often it is reached."""

    wanted: dict[Path, Path] = field(default_factory=dict[Path, Path])
    """The models to read, by resolved path."""
    known: dict[Path, Path] = field(default_factory=dict[Path, Path])
    """Models that these may refer to."""
    documents: dict[Path, Document] = field(default_factory=dict[Path, Document])

    def take(self, file: Path) -> None:
        """Take a model."""
        self.wanted.setdefault(file.resolve(), file)
        self.known.setdefault(file.resolve(), file)

    def describe(self, file: Path, document: Document) -> None:
        """Take a property file."""
        self.documents.setdefault(file.resolve(), document)

    def know(self, file: Path) -> None:
        """Take a model that no one asked for, and that others may refer to."""
        self.known.setdefault(file.resolve(), file)

    def read(
        self,
        pipelines: Sequence[PipelineSpec],
        variables: Mapping[str, object],
        environment: Mapping[str, str],
    ) -> ModelReadings:
        """Read the models.

        Args:
            pipelines: Those of YAML files, to which models may refer.
            variables: What `var` finds.
            environment: What `env_var` finds.
        """
        properties = read_properties(self.documents.values())
        broken: list[Reading] = []
        files: dict[str, SqlFile] = {}
        mistakes = [*properties.mistakes]
        for real, found in self.known.items():
            path = self.wanted.get(real, found)
            other = files.get(path.stem)
            if other is not None:
                mistakes.append(_two(path, other.path))
                continue
            try:
                files[path.stem] = SqlFile(path=path, text=read_text(path))
            except ModelError as mistake:
                broken += [unreadable(path, mistake, path.stem)] if real in self.wanted else []
        models = Models(
            files=files,
            properties=properties,
            others={p.name: p.output for p in pipelines},
            variables=variables,
            environment=environment,
        )
        wanted = {path.stem for path in self.wanted.values()}
        readings, around = broken, list[Reading]()
        for name in files:
            (readings if name in wanted else around).extend(_reading(models, name))
        mistakes += _nobody(models, set(files))
        return ModelReadings(
            readings=tuple(readings), around=tuple(around), mistakes=tuple(mistakes)
        )


def _reading(models: Models, name: str) -> Iterator[Reading]:
    file = models.files[name].path
    try:
        tree = models.tree(name)
    except ModelError as mistake:
        yield unreadable(file, _placed(mistake, Location(str(file), 1)), name)
        return
    if tree is not None:
        yield read_pipeline(Document(root=tree, mistakes=()))


def _placed(mistake: ModelError, at: Location) -> ModelError:
    return mistake if mistake.at else ModelError(mistake.message, at, mistake.hint)


def _two(path: Path, other: Path) -> ModelError:
    return ModelError(
        f"two models are called '{path.stem}': here and at {other}",
        Location(str(path), 1),
        "rename one of them",
    )


def _nobody(models: Models, names: set[str]) -> Iterator[ModelError]:
    """A description of no model is a misspelled name."""
    for name, about in models.properties.models.items():
        if name not in names:
            yield ModelError(
                f"there is no model '{name}'",
                about.tree.at,
                f"add {name}.sql below models/, or fix the name",
            )
