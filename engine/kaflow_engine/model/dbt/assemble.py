"""Models → the trees of pipeline files, so that everything after them is the same."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from kaflow_engine.errors import Location, ModelError, UnknownName
from kaflow_engine.model.dbt.data_tests import data_tests
from kaflow_engine.model.dbt.inlined import one_line
from kaflow_engine.model.dbt.properties import (
    About,
    AllProperties,
    by_section,
    called_in,
    in_cluster,
)
from kaflow_engine.model.dbt.template import Names, Rendered, render
from kaflow_engine.model.files.tree import (
    Entries,
    Entry,
    Items,
    Node,
    Scalar,
    from_plain,
    lay_over,
    text_at,
)
from kaflow_engine.model.outputs.output_specs import OutputSpec, SinkSpec

_KEPT_AS = {
    "table": "a table",
    "files": "a folder of files",
    "postgres": "a table of a database",
    "clickhouse": "a table of a database",
    "iceberg": "a table of a catalog",
    "webhook": "sent away",
    "command": "given to statements",
}
MATERIALIZED = ("stream", *_KEPT_AS, "ephemeral")

_OUTPUT = (
    *("topic", "cluster", "format", "format_options", "key", "key_format", "key_schema", "schema"),
    *("table", "partition", "interval", "coalesce", "changes", "operation", "new_topic"),
    *("side_outputs", "trace_context"),
    *("every", "folder", "partition_by", "connection", "mode", "create", "batch", "sql", "ledger"),
)
"""Keys of `output:`, which a model's configuration may give on their own."""

_CONFIG = re.compile(r"\bconfig\s*\(")


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlFile:
    """A model, as it was found."""

    path: Path
    text: str

    @property
    def name(self) -> str:
        """The model's name."""
        return self.path.stem


@dataclass(slots=True, kw_only=True)
class _Model:
    """A model that has been rendered."""

    file: SqlFile
    rendered: Rendered
    config: Entries
    """From the property file and the model, the latter on top."""
    topics: dict[str, Entries]
    """What it says about the topics it reads, by topic."""
    dimensions: list[str]

    @property
    def materialized(self) -> str:
        return text_at(self.config, "materialized") or "stream"

    @property
    def topic(self) -> str:
        return text_at(self.config, "output", "topic") or self.file.name

    @property
    def cluster(self) -> str | None:
        return text_at(self.config, "output", "cluster")

    @property
    def form(self) -> str:
        return text_at(self.config, "output", "format") or "json"


@dataclass(slots=True, kw_only=True)
class Models:
    """All models of a project."""

    files: Mapping[str, SqlFile]
    properties: AllProperties
    others: Mapping[str, OutputSpec | SinkSpec]
    """What pipelines of YAML files write, by pipeline."""
    variables: Mapping[str, object]
    environment: Mapping[str, str]
    _done: dict[str, _Model] = field(default_factory=dict[str, _Model])
    _open: list[str] = field(default_factory=list[str])

    def tree(self, name: str) -> Entries | None:
        """Return what a pipeline file would say; None for a model that is only inlined.

        Raises:
            ModelError: The template fails, or asks for something that is not there.
        """
        model = self._model(name)
        kind = model.materialized
        if kind == "ephemeral":
            return None
        if kind not in MATERIALIZED:
            raise UnknownName("materialization", kind, MATERIALIZED, self._at(model))
        return _pipeline(model, self.properties.models.get(name))

    def _model(self, name: str) -> _Model:
        if name in self._done:
            return self._done[name]
        if name in self._open:
            way = " → ".join([*self._open[self._open.index(name) :], name])
            raise ModelError(f"models refer to each other in a circle: {way}")
        self._open.append(name)
        try:
            self._done[name] = self._render(self.files[name])
        finally:
            self._open.pop()
        return self._done[name]

    def _render(self, file: SqlFile) -> _Model:
        topics: dict[str, Entries] = {}
        dimensions: list[str] = []

        def source(first: str, second: str) -> str:
            table = self.properties.tables.get((first, second))
            if table is None:
                known = [".".join(key) for key in self.properties.tables]
                raise UnknownName("source", f"{first}.{second}", known)
            topics[table.called] = table.settings
            if table.spec.config.dimension and table.called not in dimensions:
                dimensions.append(table.called)
            return _quoted(table.called)

        def ref(name: str) -> str:
            if name not in self.files:
                if name not in self.others:
                    raise UnknownName("model", name, [*self.files, *self.others])
                output = self.others[name]
                if not isinstance(output, OutputSpec):
                    what = _KEPT_AS.get(output.kind, f"an output of type '{output.kind}'")
                    raise _unreadable(name, what)
                if output.topic is None:
                    raise _unreadable(name, _KEPT_AS["table"])
                called = called_in(output.topic, output.cluster)
                topics[called] = _settings(file, output.format, output.topic, output.cluster)
                return _quoted(called)
            model = self._model(name)
            if model.materialized == "ephemeral":
                topics.update(model.topics)
                dimensions.extend(d for d in model.dimensions if d not in dimensions)
                return f"({one_line(model.rendered.sql)})"
            if model.materialized != "stream":
                raise _unreadable(name, _KEPT_AS[model.materialized])
            called = called_in(model.topic, model.cluster)
            topics[called] = _settings(model.file, model.form, model.topic, model.cluster)
            return _quoted(called)

        names = Names(
            source=source, ref=ref, variables=self.variables, environment=self.environment
        )
        rendered = render(file.text, str(file.path), names)
        config = self._config(file, rendered)
        return _Model(
            file=file, rendered=rendered, config=config, topics=topics, dimensions=dimensions
        )

    def _config(self, file: SqlFile, rendered: Rendered) -> Entries:
        found = _CONFIG.search(file.text)
        line = file.text.count("\n", 0, found.start()) + 1 if found else 1
        own = _grouped(from_plain(rendered.config, Location(str(file.path), line)))
        about = self.properties.models.get(file.name)
        said = about.tree.get("config") if about else None
        if not isinstance(said, Entries):
            return own
        return cast(Entries, lay_over(_grouped(said), own))

    def _at(self, model: _Model) -> Location:
        entry = next(e for e in model.config.entries if e.key == "materialized")
        return entry.at


def _pipeline(model: _Model, about: About | None) -> Entries:
    """Build the tree of a pipeline file."""
    start = Location(str(model.file.path), 1)
    sql = model.rendered.sql.rstrip().removesuffix(";")
    entries = [
        Entry(key="name", at=start, value=from_plain(model.file.name, start)),
        Entry(key="query", at=start, value=from_plain(sql or None, start)),
        *_about(about),
    ]
    base = Entries(at=start, entries=tuple(entries))
    tree = lay_over(from_plain({"output": _target(model)}, start), base)
    for section, read in by_section(model.topics).items():
        below = Entry(key=section, at=start, value=_mapping(start, read))
        tree = lay_over(tree, _mapping(start, [below]))
    tree = lay_over(tree, _said(model.config))
    if model.dimensions:  # what the sources say stands beside what the model says
        named = _items(model.config.get("state", "dimensions"))
        own = [item.text for item in named if isinstance(item, Scalar)]
        all_of_them = [*own, *(name for name in model.dimensions if name not in own)]
        tree = lay_over(tree, from_plain({"state": {"dimensions": all_of_them}}, start))
    assert isinstance(tree, Entries)
    return _mapping(start, sorted(tree.entries, key=lambda entry: entry.key != "name"))


def _target(model: _Model) -> dict[str, object]:
    """Return where the rows of a model go unless it says otherwise."""
    name = model.file.name
    match model.materialized:
        case "table":
            return {"table": name}
        case "files":
            return {"type": "files", "folder": name}
        case "postgres" | "clickhouse" | "iceberg" as kind:
            return {"type": kind, "table": name}
        case "webhook" | "command" as kind:
            return {"type": kind, "name": name}
        case _:
            return {"topic": name}


def _unreadable(name: str, what: str) -> ModelError:
    hint = f"read the topics that '{name}' reads, or materialize it as a stream"
    return ModelError(f"'{name}' is {what}, which no stream can read", None, hint)


def _about(about: About | None) -> Iterator[Entry]:
    """Take over description, meta and columns of a property file."""
    if about is None:
        return
    for entry in about.tree.entries:
        if entry.key in ("description", "meta"):
            yield entry
    if checks := list(data_tests(about.tree)):
        at = checks[0].at
        yield Entry(key="checks", at=at, value=Items(at=at, items=tuple(checks)))
    columns = [
        Entry(
            key=column.name,
            at=node.at,
            value=_mapping(
                node.at, [e for e in node.entries if e.key not in ("name", "data_tests")]
            ),
        )
        for column, node in zip(about.spec.columns, _items(about.tree.get("columns")), strict=True)
        if isinstance(node, Entries)
    ]
    if columns:
        yield Entry(key="columns", at=columns[0].at, value=_mapping(columns[0].at, columns))


def _grouped(config: Node) -> Entries:
    """Put what is said of the output together, under `output:`."""
    assert isinstance(config, Entries)
    output = [entry for entry in config.entries if entry.key in _OUTPUT]
    if not output:
        return config
    own = [entry for entry in config.entries if entry.key not in _OUTPUT]
    at = output[0].at
    tree = Entries(at=config.at, entries=(Entry(key="output", at=at, value=_mapping(at, output)),))
    return cast(Entries, lay_over(tree, Entries(at=config.at, entries=tuple(own))))


def _said(config: Entries) -> Entries:
    kept = [entry for entry in config.entries if entry.key != "materialized"]
    return Entries(at=config.at, entries=tuple(kept))


def _settings(file: SqlFile, form: str, topic: str, cluster: str | None) -> Entries:
    at = Location(str(file.path))
    said = {"format": form} if cluster is None else {"format": form, **in_cluster(topic, cluster)}
    return cast(Entries, from_plain(said, at))


def _mapping(at: Location, entries: Sequence[Entry]) -> Entries:
    return Entries(at=at, entries=tuple(entries))


def _items(node: Node | None) -> tuple[Node, ...]:
    return node.items if isinstance(node, Items) else ()


def _quoted(topic: str) -> str:
    return f'"{topic}"'
