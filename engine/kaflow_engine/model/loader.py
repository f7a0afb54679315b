"""Pipeline files → `PipelineSpec`."""

from collections.abc import Mapping
from pathlib import Path

import yaml

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.model import specs
from kaflow_engine.model.reading import build, check_keys
from kaflow_engine.model.rules import RULES
from kaflow_engine.model.shapes import Shape
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.model.tree import Entries, Items, Node, Scalar, describe, from_plain, walk
from kaflow_engine.model.variables import read_environment
from kaflow_engine.model.yaml_file import Document, from_yaml, raise_all, read_yaml

SHAPE = Shape(
    noun="key",
    later={PipelineSpec: frozenset({"sinks", "checks", "backfill"})},
    free=frozenset({("output", "schema", "fields")}),
)


def load_pipeline(path: Path, variables: Mapping[str, str] | None = None) -> PipelineSpec:
    """Read a pipeline file.

    Args:
        path: The file.
        variables: Values for `${VAR}`; None: the environment.

    Raises:
        ModelError: The file cannot be read, or holds a mistake.
        Problems: It holds several.
    """
    known = read_environment() if variables is None else variables
    return _pipeline(read_yaml(Path(path), known))


def find_pipeline(path: Path, variables: Mapping[str, str]) -> PipelineSpec | None:
    """Read a file that was found in a folder; None if it holds cases, which are no pipelines.

    Raises:
        ModelError: As `load_pipeline`.
    """
    document = read_yaml(path, variables)
    return None if _holds_cases(document.root) else _pipeline(document)


def pipeline_from_mapping(
    mapping: Node | yaml.Node | Mapping[str, object],
    at: Location,
    variables: Mapping[str, str] | None = None,
) -> PipelineSpec:
    """Take a pipeline that stands inside another file.

    Args:
        mapping: A tree of this package, a composed YAML node, or plain data.
        at: Where it stands; plain data stands there as a whole.
        variables: Values for `${VAR}` in a composed YAML node; None: the environment.

    Raises:
        ModelError: It holds a mistake.
        Problems: It holds several.
    """
    if isinstance(mapping, yaml.Node):
        known = read_environment() if variables is None else variables
        return _pipeline(from_yaml(mapping, at.file, known))
    root = from_plain(mapping, at) if isinstance(mapping, Mapping) else mapping
    return _pipeline(Document(root=root, mistakes=()))


def _pipeline(document: Document) -> PipelineSpec:
    root = document.root
    if not isinstance(root, Entries) or not root.entries:
        raise_all(document.mistakes)
        raise _no_pipeline(root)
    checked = check_keys(root, PipelineSpec, SHAPE)
    tree = checked.tree
    built = build(tree, PipelineSpec, SHAPE, {"at": root.entries[0].at, "places": _places(tree)})
    mistakes = [*document.mistakes, *checked.mistakes]
    if isinstance(tree, Entries):
        mistakes += [mistake for rule in RULES for mistake in rule(tree)]
    if isinstance(built, PipelineSpec):
        raise_all(mistakes)
        return built
    raise_all([*mistakes, *built])
    raise ModelError("this is not a pipeline", root.at)


def _no_pipeline(root: Node) -> ModelError:
    if isinstance(root, Entries):
        return ModelError("no pipeline stands here", root.at, "a pipeline starts with name: …")
    hint = "a pipeline starts with name: …"
    if _holds_cases(root):
        hint = "this looks like a case file; `kaflow test` runs it"
    return ModelError(f"expected a mapping, found {describe(root)}", root.at, hint)


def _holds_cases(root: Node) -> bool:
    first = root.items[0] if isinstance(root, Items) and root.items else None
    return isinstance(first, Entries) and first.get("case") is not None


def _places(tree: Node) -> dict[specs.Path, Location]:
    places = {path: at for path, at, _ in walk(tree)}
    query = tree.get("query") if isinstance(tree, Entries) else None
    if isinstance(query, Scalar):
        places[("query",)] = query.at
    return places
