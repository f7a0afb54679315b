"""The front end of Lenses SQL processors: `*.processor.sql`, `*.processor.yaml`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.model.files.tree import Entries, Node
from kaflow_engine.model.files.yaml_file import Document, raise_all, read_text, read_yaml
from kaflow_engine.model.lenses.grammar.source_text import SourceText
from kaflow_engine.model.pipelines.contract import (
    NO_TOPICS,
    FunctionKindOf,
    Lowered,
    Role,
    SharedTopics,
    SourceFile,
    Surroundings,
    no_function,
)
from kaflow_engine.model.pipelines.loader import Reading, unreadable
from kaflow_engine.model.specs import PipelineSpec

SQL = ".processor.sql"
YAML = (".processor.yaml", ".processor.yml")


@dataclass(slots=True, kw_only=True)
class _Files:
    """The one or two files of a processor."""

    sql: SourceFile | None = None
    yaml: SourceFile | None = None

    @property
    def wanted(self) -> bool:
        return any(file is not None and file.wanted for file in (self.sql, self.yaml))


class LensesProcessors:
    """Processors in the language of Lenses."""

    name = "Lenses processor"
    endings = (SQL, *YAML)
    example = "orders.processor.sql"
    variables = ()

    def claims(self, text: str) -> bool:
        """Claim nothing by its text."""
        return False

    def role(self, file: SourceFile) -> Role | None:
        """Take files by how their names end."""
        return "pipeline"

    def lower(self, files: Sequence[SourceFile], around: Surroundings) -> Lowered:
        """Lower each processor by itself."""
        found: dict[Path, _Files] = {}
        for file in files:
            one = found.setdefault(file.path.parent / name_of(file.path), _Files())
            if file.path.name.endswith(SQL):
                one.sql = file
            else:
                one.yaml = file
        for path, each in found.items():
            _complete(path, each, around.environment)
        read = [(each.wanted, _read(path.name, each, around)) for path, each in found.items()]
        return Lowered(
            readings=tuple(reading for wanted, reading in read if wanted),
            around=tuple(reading for wanted, reading in read if not wanted),
        )


def _complete(path: Path, files: _Files, environment: Mapping[str, str]) -> None:
    """Add the file beside one that was named alone."""
    sql = path.with_name(path.name + SQL)
    if files.sql is None and sql.exists():
        files.sql = SourceFile(path=sql, standing="near")
    about = _beside(path)
    if files.yaml is None and about is not None:
        try:
            document = read_yaml(about, environment)
            files.yaml = SourceFile(path=about, standing="near", document=document)
        except ModelError as mistake:
            files.yaml = SourceFile(path=about, standing="near", mistake=mistake)


def _beside(path: Path) -> Path | None:
    """Return the YAML of a processor."""
    return next((each for end in YAML if (each := path.with_name(path.name + end)).exists()), None)


def name_of(path: Path) -> str:
    """Return what a processor's file is called, without what says that it is one."""
    name = path.name
    return next(name.removesuffix(end) for end in (SQL, *YAML) if name.endswith(end))


def is_processor(root: Node) -> bool:
    """Tell whether a mapping that stands inside another file is a processor."""
    return isinstance(root, Entries) and root.get("sql") is not None


def processor_from_mapping(
    root: Node,
    function_kind: FunctionKindOf = no_function,
    topics: SharedTopics = NO_TOPICS,
) -> PipelineSpec:
    """Take a processor that stands inside another file.

    Raises:
        ModelError: It holds a mistake.
        Problems: It holds several.
    """
    document = Document(root=root, mistakes=())
    return _sound(_reading("processor", None, document, function_kind, topics))


def load_processor(
    path: Path,
    variables: Mapping[str, str],
    function_kind: FunctionKindOf = no_function,
    topics: SharedTopics = NO_TOPICS,
) -> PipelineSpec:
    """Read a processor's file, and the one beside it.

    Raises:
        ModelError: It cannot be read, or holds a mistake.
        Problems: It holds several.
    """
    name = name_of(path)
    sql = path.with_name(name + SQL)
    about = _beside(path.with_name(name))
    document = read_yaml(about, variables) if about is not None else None
    text = _text(sql) if sql.exists() else None
    return _sound(_reading(name, text, document, function_kind, topics))


def _read(name: str, files: _Files, around: Surroundings) -> Reading:
    about = files.yaml.document if files.yaml is not None else None
    try:
        if files.yaml is not None and files.yaml.mistake is not None:
            return unreadable(files.yaml.path, files.yaml.mistake, name)
        sql = _text(files.sql.path) if files.sql is not None else None
    except ModelError as mistake:
        assert files.sql is not None
        return unreadable(files.sql.path, mistake, name)
    return _reading(name, sql, about, around.function_kind, around.topics)


def _reading(
    name: str,
    sql: SourceText | None,
    about: Document | None,
    function_kind: FunctionKindOf,
    topics: SharedTopics,
) -> Reading:
    # Projects without processors load without sqlglot.
    from kaflow_engine.model.lenses.processors import read_processor

    return read_processor(name, sql, about, function_kind, topics)


def _text(path: Path) -> SourceText:
    return SourceText(text=read_text(path), at=Location(str(path), 1))


def _sound(reading: Reading) -> PipelineSpec:
    raise_all(reading.mistakes)
    if reading.spec is None:
        raise ModelError("this is not a processor", reading.at)
    return reading.spec
