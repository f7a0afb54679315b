"""The front end of dbt-style models: SQL files, and property files that say something of them."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.model.dbt.assemble import Models, SqlFile
from kaflow_engine.model.dbt.properties import holds_properties, read_properties
from kaflow_engine.model.files.yaml_file import Document, read_text
from kaflow_engine.model.pipelines.contract import Lowered, Role, SourceFile, Surroundings
from kaflow_engine.model.pipelines.front_end import SUFFIXES
from kaflow_engine.model.pipelines.loader import Reading, read_pipeline, unreadable

MODEL = ".sql"


class DbtModels:
    """`*.sql` below `models/`, with `config`, `source` and `ref`."""

    name = "dbt-style model"
    endings = (MODEL, *SUFFIXES)
    example = "models/orders.sql"
    variables = ()

    def claims(self, text: str) -> bool:
        """Claim nothing by its text."""
        return False

    def role(self, file: SourceFile) -> Role | None:
        """Take SQL files, those below `models/` unasked, and YAML that begins as properties do."""
        if file.path.suffix == MODEL:
            below_models = "models" in file.path.absolute().parts
            return "pipeline" if file.standing == "named" or below_models else None
        if file.document is not None and holds_properties(file.document.root):
            return "about"
        return None

    def lower(self, files: Sequence[SourceFile], around: Surroundings) -> Lowered:
        """Render all models, each with what it refers to; ephemeral ones make no pipeline."""
        documents = [file.document for file in files if file.document is not None]
        properties = read_properties(documents)
        mistakes = [*properties.mistakes]
        broken: list[Reading] = []
        sql: dict[str, SqlFile] = {}
        wanted: set[str] = set()
        for file in files:
            if file.path.suffix != MODEL:
                continue
            name = file.path.stem
            if name in sql:
                mistakes.append(_two(file.path, sql[name].path))
                continue
            if file.wanted:
                wanted.add(name)
            try:
                sql[name] = SqlFile(path=file.path, text=read_text(file.path))
            except ModelError as mistake:
                broken += [unreadable(file.path, mistake, name)] if file.wanted else []
        models = Models(
            files=sql,
            properties=properties,
            others={
                pipeline.name: pipeline.output
                for pipeline in around.pipelines
                if pipeline.output is not None
            },
            variables=around.variables,
            environment=around.environment,
        )
        readings, near = broken, list[Reading]()
        for name in sql:
            (readings if name in wanted else near).extend(_reading(models, name))
        mistakes += _described_only(models, set(sql))
        return Lowered(readings=tuple(readings), around=tuple(near), mistakes=tuple(mistakes))


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


def _described_only(models: Models, names: set[str]) -> Iterator[ModelError]:
    """A description of no model is a misspelled name."""
    for name, about in models.properties.models.items():
        if name not in names:
            yield ModelError(
                f"there is no model '{name}'",
                about.tree.at,
                f"add {name}.sql below models/, or fix the name",
            )
