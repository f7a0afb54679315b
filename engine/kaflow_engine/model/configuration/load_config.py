"""Defaults, file, environment and command line → `Config`."""

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.masking import remember_settings
from kaflow_engine.model.config import CheckpointConfig, Config
from kaflow_engine.model.configuration.http_access import with_token
from kaflow_engine.model.configuration.layers import environment_tree, overrides_tree
from kaflow_engine.model.configuration.streamling.settings import (
    holds_settings,
    settings_layers,
    without_settings,
)
from kaflow_engine.model.files.mistakes import dotted, place
from kaflow_engine.model.files.reading import build, check_keys
from kaflow_engine.model.files.shapes import Shape
from kaflow_engine.model.files.tree import Entries, Node, Scalar, describe, lay_over, walk
from kaflow_engine.model.files.variables import DEFAULTS, read_environment, read_secret
from kaflow_engine.model.files.yaml_file import Document, raise_all, read_yaml
from kaflow_engine.model.outputs.cluster_specs import ClusterConfig
from kaflow_engine.model.pipelines.kinds import holds_configuration, kind_of
from kaflow_engine.model.pipelines.loader import is_foreign
from kaflow_engine.model.spec import Path as KeyPath

FILES = ("kaflow.yaml", "kaflow.yml")
"""Names that only the configuration has."""
_SHARED = ("config.yaml", "config.yml")
"""Names that it may have, as files of other programs do."""

SHAPE = Shape(noun="configuration key", later={CheckpointConfig: frozenset({"log"})})

_BUCKET = ("state", "rocksdb", "checkpoint", "s3")
_OF_CLUSTERS = {
    "bootstrap.servers": "brokers",
    "metadata.broker.list": "brokers",
    "transaction.timeout.ms": "transaction_timeout",
}
"""Client properties that are not for authors, and the key of a cluster that is."""
_OWNED = {
    "auto.offset.reset": "set kafka.consumer.autoOffsetReset",
    "group.id": "set kafka.consumer.group",
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
    """Return the configuration file of a folder: `kaflow.yaml` or `config.yaml`; None: it has none.

    Raises:
        ModelError: It has two.
    """
    found = [folder / name for name in FILES if (folder / name).is_file()]
    found += [folder / name for name in _SHARED if _may_be_ours(folder / name)]
    if found[1:]:
        raise ModelError(
            f"'{found[1].name}' beside it is a configuration too",
            Location(str(found[0])),
            "remove one of them, or choose one with --config",
        )
    return found[0] if found else None


def config_among(paths: Sequence[Path]) -> tuple[Path | None, tuple[Path, ...]]:
    """Take the file that holds the configuration out of paths.

    Returns:
        The file, None if there is none, and the other paths.

    Raises:
        ModelError: There are two.
    """
    found = [path for path in paths if _is_configuration(path)]
    for second in found[1:]:
        raise second_config(second, found[0])
    return (found[0] if found else None), tuple(path for path in paths if path not in found)


def second_config(file: Path, first: Path) -> ModelError:
    """Return the error for a configuration that is named after another one."""
    return ModelError(
        f"this is a configuration, and '{first}' is one already",
        Location(str(file)),
        "name one of them",
    )


def _is_configuration(path: Path) -> bool:
    if path.suffix not in (".yaml", ".yml") or not path.is_file():
        return False
    try:
        if path.name in FILES:
            return True
        root = read_yaml(path, {}).root
        return holds_configuration(root) or holds_settings(root)
    except ModelError:
        return False  # whoever reads it as a pipeline reports that


def _may_be_ours(file: Path) -> bool:
    """Tell whether a file is a configuration of kaflow, right or wrong."""
    if not file.is_file():
        return False
    try:
        root = read_yaml(file, {}).root
        ours = kind_of(root) != "pipeline" and not is_foreign(root, Config)
        return ours or holds_settings(root)
    except ModelError:
        return True  # loading it reports that


def load_config(
    path: Path | None = None,
    environment: Mapping[str, str] | None = None,
    overrides: Mapping[str, object] | Node | None = None,
) -> Config:
    """Build the configuration: defaults < `KAFLOW_DEFAULT__…` < file < environment < overrides.

    `STREAMLING__…`, and keys of Streamling in the file, stand before `KAFLOW__…`.

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
    root = _mapping(document) if document else None
    theirs = settings_layers(variables, root)
    layers = [
        theirs.defaults,
        environment_tree(variables, DEFAULTS),
        *([without_settings(root)] if root else []),
        theirs.said,
        environment_tree(variables),
        overrides_tree(overrides or {}) if isinstance(overrides, Mapping | None) else overrides,
    ]
    checked = [check_keys(layer, Config, SHAPE) for layer in layers]
    tree = reduce(lay_over, [layer.tree for layer in checked])
    known = {"origins": _origins(tree), "file": str(path) if path else None}
    built = build(tree, Config, SHAPE, known)
    mistakes = [*(document.mistakes if document else ()), *theirs.mistakes]
    mistakes += [mistake for layer in checked for mistake in layer.mistakes]
    if isinstance(built, Config):
        config, of_token = with_token(built, tree, read_secret)
        remember_settings(config.model_dump(by_alias=True))
        raise_all([*mistakes, *_cross_checks(built, tree), *of_token])
        return config
    raise_all([*mistakes, *built])
    raise ModelError("this is not a configuration", tree.at)


def _mapping(document: Document) -> Entries:
    root = document.root
    if isinstance(root, Entries):
        if kind_of(root) == "pipeline":
            hint = "name the configuration with --config, and the pipeline without it"
            raise ModelError("this is a pipeline, not a configuration", root.at, hint)
        return root
    if isinstance(root, Scalar) and root.text is None:
        return Entries(at=root.at, entries=())
    hint = "a configuration has keys such as kafka and state"
    raise ModelError(f"expected a mapping, found {describe(root)}", root.at, hint)


def _origins(tree: Node) -> dict[KeyPath, str]:
    return {path: str(at) for path, at, value in walk(tree) if not isinstance(value, Entries)}


def _cross_checks(config: Config, tree: Node) -> list[ModelError]:
    return [
        *_without_bucket(config, tree),
        *_of_the_engine(config, tree),
        *_never_in_sync(config, tree),
    ]


def _clusters(config: Config) -> Iterator[tuple[KeyPath, ClusterConfig]]:
    """Yield clusters of Kafka with where they stand."""
    for name, cluster in config.kafka.every.items():
        yield ("kafka", "clusters", name) if name else ("kafka",), cluster


def _never_in_sync(config: Config, tree: Node) -> list[ModelError]:
    return [
        ModelError(
            f"no topic with {cluster.replication_factor} replicas has "
            f"{cluster.min_insync_replicas} in sync",
            place(tree, (*path, "min_insync_replicas")),
            f"{dotted(path)}.min_insync_replicas is at most {dotted(path)}.replication_factor, and "
            "best one less",
        )
        for path, cluster in _clusters(config)
        if cluster.replication_factor is not None
        and (cluster.min_insync_replicas or 0) > cluster.replication_factor
    ]


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
    return [
        ModelError(
            f"kaflow decides the Kafka property '{name}'",
            place(tree, (*path, "properties", name)),
            _cure(name, dotted(path)),
        )
        for path, cluster in _clusters(config)
        for name in (*_OF_CLUSTERS, *_OWNED)
        if name in cluster.properties
    ]


def _cure(name: str, section: str) -> str:
    of_cluster = _OF_CLUSTERS.get(name)
    return _OWNED[name] if of_cluster is None else f"set {section}.{of_cluster}"
