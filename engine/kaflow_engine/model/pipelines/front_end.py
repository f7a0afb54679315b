"""The front end of pipeline files: one YAML file, one pipeline."""

from collections.abc import Sequence

from kaflow_engine.model.files.streamling_files import is_streamling
from kaflow_engine.model.files.tree import Entries, Node
from kaflow_engine.model.pipelines.contract import Lowered, Role, SourceFile, Surroundings
from kaflow_engine.model.pipelines.loader import (
    Reading,
    holds_cases,
    is_foreign,
    read_pipeline,
    unreadable,
)

SUFFIXES = (".yaml", ".yml")

_OWN = frozenset({"name", "query", "output"})
_OF_OTHERS = frozenset({"models", "sources", "unit_tests"})


class PipelineFiles:
    """YAML files with a `name`, a `query` and an `output`."""

    name = "pipeline file"
    endings = SUFFIXES
    example = "orders.yaml"
    variables = ()

    def claims(self, text: str) -> bool:
        """Claim nothing by its text."""
        return False

    def role(self, file: SourceFile) -> Role | None:
        """Take YAML that shares a key with pipelines; what cannot be read may be one, too."""
        if file.document is None:
            return "pipeline"
        root = file.document.root
        other = _of_others(root) or holds_cases(root) or is_foreign(root) or is_streamling(root)
        return None if other else "pipeline"

    def lower(self, files: Sequence[SourceFile], around: Surroundings) -> Lowered:
        """Read each file by itself; of files that no one asked for, those that can be read."""
        read = [(file, _reading(file)) for file in files if file.wanted or file.document]
        return Lowered(
            readings=tuple(reading for file, reading in read if file.wanted),
            around=tuple(reading for file, reading in read if not file.wanted),
        )


def _reading(file: SourceFile) -> Reading:
    if file.document is not None:
        return read_pipeline(file.document)
    assert file.mistake is not None
    return unreadable(file.path, file.mistake)


def _of_others(root: Node) -> bool:
    if not isinstance(root, Entries):
        return False
    keys = {entry.key for entry in root.entries}
    return bool(keys & _OF_OTHERS) and not keys & _OWN
