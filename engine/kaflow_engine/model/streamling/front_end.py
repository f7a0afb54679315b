"""The front end of Streamling files: `sources`, `transforms` and `sinks` in one YAML or JSON."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from kaflow_engine.errors import ModelError
from kaflow_engine.model.files.streamling_files import JSON, is_streamling
from kaflow_engine.model.files.tree import Node
from kaflow_engine.model.files.yaml_file import Document, Rewrite, raise_all, read_yaml
from kaflow_engine.model.pipelines.contract import Lowered, Role, SourceFile, Surroundings
from kaflow_engine.model.pipelines.loader import Reading, unreadable
from kaflow_engine.model.specs import PipelineSpec


class StreamlingPipelines:
    """Files of sources, transforms and sinks."""

    name = "Streamling pipeline"
    endings = (".yaml", ".yml", JSON)
    example = "orders.json"
    variables = ()

    def claims(self, text: str) -> bool:
        """Claim nothing by its text."""
        return False

    def role(self, file: SourceFile) -> Role | None:
        """Take files by their keys."""
        if file.document is None:
            return "pipeline" if file.path.suffix == JSON and file.standing == "named" else None
        return "pipeline" if is_streamling(file.document.root) else None

    def lower(self, files: Sequence[SourceFile], around: Surroundings) -> Lowered:
        """Lower each file by itself."""
        read = [(file.wanted, _reading(file, around)) for file in files]
        return Lowered(
            readings=tuple(reading for wanted, reading in read if wanted),
            around=tuple(reading for wanted, reading in read if not wanted),
        )


def load_streamling(
    path: Path,
    variables: Mapping[str, str],
    rewrite: Rewrite | None = None,
    settings: Mapping[str, object] | None = None,
) -> PipelineSpec:
    """Read a file.

    Args:
        path: The file.
        variables: Values for `${VAR}`.
        rewrite: What the configuration does to its text before it is parsed.
        settings: `vars` of the configuration.

    Raises:
        ModelError: It cannot be read, or holds a mistake.
        Problems: It holds several.
    """
    document = read_yaml(path, variables, rewrite=rewrite)
    return _sound(_read(document, _name(path), settings or {}))


def streamling_from_mapping(
    root: Node, name: str, settings: Mapping[str, object] | None = None
) -> PipelineSpec:
    """Take a topology that stands inside another file.

    Args:
        root: The mapping.
        name: What the pipeline is called.
        settings: `vars` of the configuration.

    Raises:
        ModelError: It holds a mistake.
        Problems: It holds several.
    """
    return _sound(_read(Document(root=root, mistakes=()), name, settings or {}))


def _reading(file: SourceFile, around: Surroundings) -> Reading:
    name = _name(file.path)
    if file.document is None:
        assert file.mistake is not None
        return unreadable(file.path, file.mistake, name)
    return _read(file.document, name, around.variables)


def _read(document: Document, name: str, settings: Mapping[str, object]) -> Reading:
    # Projects without such files load without sqlglot.
    from kaflow_engine.model.streamling.lowering.pipeline import read_streamling

    return read_streamling(document, name, settings)


def _name(path: Path) -> str:
    return path.name.rpartition(".")[0]


def _sound(reading: Reading) -> PipelineSpec:
    raise_all(reading.mistakes)
    if reading.spec is None:
        raise ModelError("this is not a pipeline", reading.at)
    return reading.spec
