"""Pipeline files → `PipelineSpec`."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

import yaml

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.model.files.reading import build, check_keys, salvage
from kaflow_engine.model.files.shapes import EACH, Shape, file_keys
from kaflow_engine.model.files.tree import (
    Entries,
    Items,
    Node,
    Scalar,
    describe,
    find,
    from_plain,
    walk,
)
from kaflow_engine.model.files.variables import variables_of_authors
from kaflow_engine.model.files.yaml_file import (
    Document,
    Rewrite,
    from_yaml,
    in_order,
    raise_all,
    read_yaml,
)
from kaflow_engine.model.pipelines.kinds import kind_of
from kaflow_engine.model.pipelines.rules import RULES
from kaflow_engine.model.sources.kafka_sources import with_topics
from kaflow_engine.model.spec import Path as KeyPath
from kaflow_engine.model.spec import Spec
from kaflow_engine.model.specs import PipelineSpec

SHAPE = Shape(
    noun="key",
    later={PipelineSpec: frozenset({"sinks"})},
    free=frozenset(
        {
            ("output", "schema", "fields"),
            ("checks",),
            ("outputs", EACH, "schema", "fields"),
            ("outputs", EACH, "checks"),
            ("output", "options"),
            ("outputs", EACH, "options"),
            ("output", "side_outputs", EACH, "options"),
            ("outputs", EACH, "side_outputs", EACH, "options"),
            ("topics", EACH, "format_options"),
            ("output", "format_options"),
            ("outputs", EACH, "format_options"),
            ("sources", EACH, "options"),
            ("relations", EACH, "options"),
        }
    ),
)

_NEEDED = {"name": "_", "output": {"topic": "_"}}
"""What stands in for required keys, so that the rest of a file can be checked."""
_NEEDED_OF_MANY = {"name": "_"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a file says as far as it can be read, and what is wrong with its form."""

    at: Location
    """Where the pipeline begins."""
    name: str | None = None
    """As its author wrote it; None where it is missing or wrong."""
    spec: PipelineSpec | None = None
    """Without the parts that are wrong; None: not even its query can be read."""
    mistakes: tuple[ModelError, ...] = ()
    front_end: str = ""
    """The name of the front end that its file belongs to."""


def load_pipeline(
    path: Path, variables: Mapping[str, str] | None = None, rewrite: Rewrite | None = None
) -> PipelineSpec:
    """Read a pipeline file.

    Args:
        path: The file.
        variables: Values for `${VAR}`; None: those of authors.
        rewrite: What the configuration does to its text before it is parsed.

    Raises:
        ModelError: The file cannot be read, or holds a mistake.
        Problems: It holds several.
    """
    known = variables_of_authors() if variables is None else variables
    return _sound(read_pipeline(read_yaml(Path(path), known, rewrite=rewrite)))


def read_pipeline(document: Document) -> Reading:
    """Read a pipeline as far as it can be read."""
    root = document.root
    if not isinstance(root, Entries) or not root.entries:
        return Reading(at=root.at, mistakes=in_order(document.mistakes) or (_no_pipeline(root),))
    at = root.entries[0].at
    try:
        kind_of(root)
    except ModelError as error:
        return unreadable(Path(at.file), error, _name_in(root))
    checked = check_keys(with_topics(root), PipelineSpec, SHAPE)
    tree = checked.tree
    known = {"at": at, "places": _places(tree)}
    built = build(tree, PipelineSpec, SHAPE, known)
    mistakes = [*document.mistakes, *checked.mistakes]
    if isinstance(tree, Entries):
        mistakes += [mistake for rule in RULES for mistake in rule(tree)]
    spec = built if isinstance(built, PipelineSpec) else None
    if not isinstance(built, PipelineSpec):
        mistakes += built
        many = isinstance(tree, Entries) and tree.get("outputs") is not None
        needed = from_plain(_NEEDED_OF_MANY if many else _NEEDED, at)
        spec = salvage(tree, PipelineSpec, SHAPE, known, needed)
    if spec is not None and not spec.writes:
        spec = None
    text = _name_in(root)
    named = text if spec is None or spec.name == text else None
    return Reading(at=at, name=named, spec=spec, mistakes=in_order(mistakes))


def unreadable(file: Path, mistake: ModelError, name: str | None = None) -> Reading:
    """Return what is left of a file that cannot be read."""
    return Reading(at=mistake.at or Location(str(file)), name=name, mistakes=in_order([mistake]))


def pipeline_from_mapping(
    mapping: Node | yaml.Node | Mapping[str, object],
    at: Location,
    variables: Mapping[str, str] | None = None,
) -> PipelineSpec:
    """Take a pipeline that stands inside another file.

    Args:
        mapping: A tree of this package, a composed YAML node, or plain data.
        at: Where it stands; plain data stands there as a whole.
        variables: Values for `${VAR}` in a composed YAML node; None: those of authors.

    Raises:
        ModelError: It holds a mistake.
        Problems: It holds several.
    """
    if isinstance(mapping, yaml.Node):
        known = variables_of_authors() if variables is None else variables
        return _sound(read_pipeline(from_yaml(mapping, replace(at, line=None), known)))
    root = from_plain(mapping, at) if isinstance(mapping, Mapping) else mapping
    return _sound(read_pipeline(Document(root=root, mistakes=())))


def _sound(reading: Reading) -> PipelineSpec:
    raise_all(reading.mistakes)
    if reading.spec is None:
        raise ModelError("this is not a pipeline", reading.at)
    return reading.spec


def _name_in(root: Entries) -> str | None:
    name = root.get("name")
    return name.text if isinstance(name, Scalar) else None


def _no_pipeline(root: Node) -> ModelError:
    if isinstance(root, Entries):
        return ModelError("no pipeline stands here", root.at, "a pipeline starts with name: …")
    hint = "a pipeline starts with name: …"
    if holds_cases(root):
        hint = "this looks like a case file; `kaflow test` runs it"
    return ModelError(f"expected a mapping, found {describe(root)}", root.at, hint)


def holds_cases(root: Node) -> bool:
    """Return whether a YAML file holds cases, and no pipeline."""
    first = root.items[0] if isinstance(root, Items) and root.items else None
    return isinstance(first, Entries) and first.get("case") is not None


def is_foreign(root: Node, kind: type[Spec] = PipelineSpec) -> bool:
    """Return whether a YAML file is about something else: no key is one of a specification, or
    nearly so.
    """
    if not isinstance(root, Entries) or not root.entries:
        return False
    known = list(file_keys(kind))
    return not any(get_close_matches(e.key, known, n=1, cutoff=0.75) for e in root.entries)


def _places(tree: Node) -> dict[KeyPath, Location]:
    places = {path: at for path, at, _ in walk(tree)}
    if not isinstance(tree, Entries):
        return places
    relations = tree.get("relations")
    named = relations.entries if isinstance(relations, Entries) else ()
    outputs = tree.get("outputs")
    listed = outputs.items if isinstance(outputs, Items) else ()
    paths: list[KeyPath] = [
        ("relations", entry.key, key) for entry in named for key in ("query", "script")
    ]
    paths += [("outputs", number, "query") for number in range(len(listed))]
    for path in (("query",), *paths):
        if isinstance(text := find(tree, path), Scalar):
            places[path] = text.at  # of the first line of the text
    return places
