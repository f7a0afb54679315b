"""Defaults, file, environment and command line → `Config`."""

from collections.abc import Mapping
from functools import reduce
from pathlib import Path

from kaflow_engine.errors import ModelError
from kaflow_engine.masking import remember_settings
from kaflow_engine.model import specs
from kaflow_engine.model.config import CheckpointConfig, Config
from kaflow_engine.model.layers import environment_tree, overrides_tree
from kaflow_engine.model.mistakes import place
from kaflow_engine.model.reading import build, check_keys
from kaflow_engine.model.shapes import Shape
from kaflow_engine.model.tree import Entries, Node, Scalar, describe, lay_over, walk
from kaflow_engine.model.variables import read_environment, read_secret
from kaflow_engine.model.yaml_file import Document, raise_all, read_yaml

FILES = ("kaflow.yaml", "kaflow.yml")
"""Names of the configuration in a folder."""

SHAPE = Shape(noun="configuration key", later={CheckpointConfig: frozenset({"log"})})

_BUCKET = ("state", "rocksdb", "checkpoint", "s3")
_OWNED = {
    "auto.offset.reset": "set kafka.consumer.autoOffsetReset",
    "bootstrap.servers": "set kafka.brokers",
    "metadata.broker.list": "set kafka.brokers",
    "group.id": "set kafka.consumer.group",
    "transaction.timeout.ms": "set kafka.transaction_timeout",
    **dict.fromkeys(
        ("enable.auto.commit", "enable.idempotence", "isolation.level", "transactional.id"),
        "remove it; `delivery` of a pipeline says what is guaranteed",
    ),
    **dict.fromkeys(
        ("key.serializer", "value.serializer", "key.deserializer", "value.deserializer"),
        "remove it; `format` of a topic says how it is read and written",
    ),
    "partitioner": "remove it; rows go where Java's default partitioner puts them",
}
"""Client properties that are not for authors, and what is."""


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
    document = read_yaml(path, variables, read_secret) if path else None
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
        remember_settings(built.model_dump(by_alias=True))
        raise_all([*mistakes, *_without_bucket(built, tree), *_of_the_engine(built, tree)])
        return built
    raise_all([*mistakes, *built])
    raise ModelError("this is not a configuration", tree.at)


def _mapping(document: Document) -> Entries:
    root = document.root
    if isinstance(root, Entries):
        if root.get("query") is not None:
            hint = "name the configuration with --config, and the pipeline without it"
            raise ModelError("this is a pipeline, not a configuration", root.at, hint)
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
    message = f"'{key}' is required when s3 is enabled"
    return [ModelError(message, at, "name the bucket, or set s3.enabled to false")]


def _of_the_engine(config: Config, tree: Node) -> list[ModelError]:
    """Refuse client properties that would be left out: the guarantees rest on them."""
    path = ("kafka", "properties")
    return [
        ModelError(f"kaflow decides the Kafka property '{name}'", place(tree, (*path, name)), cure)
        for name, cure in _OWNED.items()
        if name in config.kafka.properties
    ]
