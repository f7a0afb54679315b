"""Property files → what they say about sources and models, with the place of everything."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kaflow_engine.errors import ModelError
from kaflow_engine.model.dbt.specs import (
    SHAPE,
    ModelProperties,
    Properties,
    PropertyColumn,
    TableSpec,
    TopicConfig,
)
from kaflow_engine.model.files.reading import build, check_keys
from kaflow_engine.model.files.streamling_files import is_streamling
from kaflow_engine.model.files.tree import (
    Entries,
    Entry,
    Items,
    Node,
    Scalar,
    find,
    from_plain,
    lay_over,
)
from kaflow_engine.model.files.yaml_file import Document

KEYS = ("models", "sources", "unit_tests")
"""What a property file starts with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of a source."""

    spec: TableSpec
    called: str
    """What queries call it."""
    settings: Entries
    """What a pipeline file would say below `topics: <topic>:`, or below `sources: <name>:`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What property files say about a model."""

    spec: ModelProperties
    tree: Entries


@dataclass(frozen=True, slots=True, kw_only=True)
class AllProperties:
    """What all property files say."""

    tables: dict[tuple[str, str], Table]
    models: dict[str, About]
    mistakes: tuple[ModelError, ...]


def holds_properties(root: Node) -> bool:
    """Return whether a YAML file holds properties, and no pipeline."""
    if not isinstance(root, Entries):
        return False
    keys = {entry.key for entry in root.entries}
    other = keys & {"name", "query", "output"} or is_streamling(root)
    return bool(keys & set(KEYS)) and not other


def read_properties(documents: Iterable[Document]) -> AllProperties:
    """Read property files."""
    tables: dict[tuple[str, str], Table] = {}
    models: dict[str, About] = {}
    mistakes: list[ModelError] = []
    for document in documents:
        checked = check_keys(document.root, Properties, SHAPE)
        mistakes += [*document.mistakes, *checked.mistakes]
        built = build(checked.tree, Properties, SHAPE, {})
        if not isinstance(built, Properties):
            mistakes += built
            continue
        for table in _tables(built, checked.tree):
            key = table[0]
            if key in tables:
                mistakes.append(_twice("table", ".".join(key), table[1].settings, tables[key]))
            tables.setdefault(*table)
        for about in _models(built, checked.tree):
            name = about.spec.name
            if name in models:
                mistakes.append(_twice("model", name, about.tree, models[name]))
            models.setdefault(name, about)
    for table in tables.values():
        mistakes += _untyped(table.spec.columns, table.settings)
    return AllProperties(tables=tables, models=models, mistakes=tuple(mistakes))


def _tables(built: Properties, root: Node) -> Iterator[tuple[tuple[str, str], Table]]:
    for i, source in enumerate(built.sources):
        for j, spec in enumerate(source.tables):
            tree = find(root, ("sources", i, "tables", j))
            assert isinstance(tree, Entries)
            config = tree.get("config")
            said = config.entries if isinstance(config, Entries) else ()
            apart = {"dimension", "type"} if spec.config.type in (None, "kafka") else {"dimension"}
            entries = [entry for entry in said if entry.key not in apart]
            entries += _columns(spec.columns, tree.get("columns"))
            about = tree.get("description") or find(root, ("sources", i, "description"))
            if isinstance(about, Scalar):
                entries.append(Entry(key="description", at=about.at, value=about))
            topic, cluster = spec.identifier or spec.name, None
            if isinstance(spec.config, TopicConfig) and spec.config.cluster is not None:
                topic, cluster = spec.config.topic or topic, spec.config.cluster
                there = from_plain(in_cluster(topic, cluster), tree.at)
                said_of = Entries(at=tree.at, entries=tuple(entries))
                merged = lay_over(there, said_of)
                assert isinstance(merged, Entries)
                entries = list(merged.entries)
            settings = Entries(at=tree.at, entries=tuple(entries))
            called = called_in(topic, cluster)
            yield (source.name, spec.name), Table(spec=spec, called=called, settings=settings)


def called_in(topic: str, cluster: str | None) -> str:
    """Return what queries call a topic: topics of one name may be in several clusters.

    >>> called_in("orders", None), called_in("orders", "west")
    ('orders', 'west.orders')
    """
    return topic if cluster is None else f"{cluster}.{topic}"


def in_cluster(topic: str, cluster: str) -> dict[str, str]:
    """Return what a pipeline file says of a topic in a cluster."""
    return {"cluster": cluster, "topic": topic}


def _columns(columns: Iterable[PropertyColumn], tree: Node | None) -> list[Entry]:
    """Return `columns:` as a pipeline file declares the columns of a topic; none without types."""
    typed = [
        Entry(key=column.name, at=node.at, value=from_plain(column.data_type, node.at))
        for column, node in zip(columns, _items(tree), strict=True)
        if column.data_type is not None
    ]
    if not typed:
        return []
    at = typed[0].at
    return [Entry(key="columns", at=at, value=Entries(at=at, entries=tuple(typed)))]


def by_section(read: Mapping[str, Entries]) -> dict[str, list[Entry]]:
    """Return what is said of topics, and of other sources, below the keys of a pipeline file."""
    found: dict[str, list[Entry]] = {}
    for name, tree in read.items():
        section = "topics" if tree.get("type") is None else "sources"
        found.setdefault(section, []).append(Entry(key=name, at=tree.at, value=tree))
    return found


def _models(built: Properties, root: Node) -> Iterator[About]:
    for i, spec in enumerate(built.models):
        tree = find(root, ("models", i))
        assert isinstance(tree, Entries)
        yield About(spec=spec, tree=tree)


def _items(tree: Node | None) -> tuple[Node, ...]:
    return tree.items if isinstance(tree, Items) else ()


def _untyped(columns: tuple[PropertyColumn, ...], settings: Entries) -> Iterator[ModelError]:
    """Columns without a type beside columns with one would be lost."""
    missing = [column.name for column in columns if column.data_type is None]
    if missing and len(missing) < len(columns):
        yield ModelError(
            f"column '{missing[0]}' has no data_type, others of its table have one",
            settings.at,
            "give all columns a data_type, or none",
        )


def _twice(kind: str, name: str, tree: Entries, first: Table | About) -> ModelError:
    other = first.settings.at if isinstance(first, Table) else first.tree.at
    return ModelError(
        f"{kind} '{name}' is described twice: here and at {other}", tree.at, "remove one of them"
    )
