"""Defaults, file, environment and command line → `Config`."""

from collections.abc import Mapping
from functools import reduce
from pathlib import Path

from kaflow_engine.errors import ModelError
from kaflow_engine.model import specs
from kaflow_engine.model.config import CheckpointConfig, Config
from kaflow_engine.model.layers import environment_tree, lay_over, overrides_tree
from kaflow_engine.model.mistakes import place
from kaflow_engine.model.reading import build, check_keys
from kaflow_engine.model.shapes import Shape
from kaflow_engine.model.tree import Entries, Node, Scalar, describe, walk
from kaflow_engine.model.variables import read_environment
from kaflow_engine.model.yaml_file import Document, raise_all, read_yaml

FILES = ("kaflow.yaml", "kaflow.yml")
"""Names of the configuration in a folder."""

SHAPE = Shape(noun="configuration key", later={CheckpointConfig: frozenset({"log"})})

_BUCKET = ("state", "rocksdb", "checkpoint", "s3")


def find_config(folder: Path) -> Path | None:
    """Return the configuration file of a folder, None if it has none."""
    return next((folder / name for name in FILES if (folder / name).is_file()), None)


def load_config(
    path: Path | None = None,
    environment: Mapping[str, str] | None = None,
    overrides: Mapping[str, object] | Node | None = None,
) -> Config:
    """Build the configuration: defaults < file < environment < overrides.

    Args:
        path: The file; None: there is none.
        environment: Variables of the environment; None: those of this process.
        overrides: Nested mappings, or dotted names such as `state.ttl`.

    Raises:
        ModelError: A mistake in one of them.
        Problems: Several.
    """
    variables = read_environment() if environment is None else environment
    document = read_yaml(path, variables) if path else None
    layers = [
        *([_mapping(document)] if document else []),
        environment_tree(variables),
        overrides_tree(overrides or {}) if isinstance(overrides, Mapping | None) else overrides,
    ]
    checked = [check_keys(layer, Config, SHAPE) for layer in layers]
    tree = reduce(lay_over, [layer.tree for layer in checked])
    known = {"origins": _origins(tree), "file": str(path) if path else None}
    built = build(tree, Config, SHAPE, known)
    mistakes = [*(document.mistakes if document else ())]
    mistakes += [mistake for layer in checked for mistake in layer.mistakes]
    if isinstance(built, Config):
        raise_all([*mistakes, *_without_bucket(built, tree)])
        return built
    raise_all([*mistakes, *built])
    raise ModelError("this is not a configuration", tree.at)


def _mapping(document: Document) -> Entries:
    root = document.root
    if isinstance(root, Entries):
        return root
    if isinstance(root, Scalar) and root.text is None:
        return Entries(at=root.at, entries=())
    hint = "a configuration has keys such as kafka and state"
    raise ModelError(f"expected a mapping, found {describe(root)}", root.at, hint)


def _origins(tree: Node) -> dict[specs.Path, str]:
    return {path: str(at) for path, at, value in walk(tree) if not isinstance(value, Entries)}


def _without_bucket(config: Config, tree: Node) -> list[ModelError]:
    s3 = config.state.rocksdb.checkpoint.s3
    if not s3.enabled or s3.bucket:
        return []
    key = ".".join((*_BUCKET, "bucket"))
    at = place(tree, (*_BUCKET, "enabled"))
    return [ModelError(f"'{key}' is required when s3 is enabled", at)]
