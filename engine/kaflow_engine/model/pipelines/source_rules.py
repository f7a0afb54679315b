"""What is wrong with sources that are no topics, although every value alone is right."""

from collections.abc import Iterator

from kaflow_engine.errors import ModelError
from kaflow_engine.model.files.mistakes import place
from kaflow_engine.model.files.tree import Entries, brief, text_at
from kaflow_engine.model.names import TOPIC_NAMES, is_topic_name
from kaflow_engine.model.pipelines.output_rules import outputs_of
from kaflow_engine.model.pipelines.table_rules import is_said, is_table, is_true
from kaflow_engine.model.sources.attached_specs import ATTACHED_ONLY
from kaflow_engine.model.sources.live_specs import (
    HttpSourceSpec,
    MqttSourceSpec,
    WebhookSourceSpec,
    WebsocketSourceSpec,
)
from kaflow_engine.model.spec import Path

_STORES = ("s3://", "s3a://")
_OF_ATTACHED = {
    *("type", "connection", "path", "table_name", "where", "columns", "attached", "refresh"),
    *("description", "sql", "files"),
}
_FIRST = {
    "webhook": WebhookSourceSpec.unit,
    "websocket": WebsocketSourceSpec.unit,
    "http": HttpSourceSpec.unit,
    "mqtt": MqttSourceSpec.unit,
}
"""What records of live sources come in."""
_OF_DISTRIBUTIONS = {
    "min": ("uniform",),
    "max": ("uniform", "skewed"),
    "digits": ("uniform", "normal"),
    "mean": ("normal",),
    "deviation": ("normal",),
    "of": ("choice",),
    "prefix": ("sequence", "uniform", "skewed"),
}
"""Keys that some distributions have, and others do not."""


def names_of_sources(tree: Entries) -> Iterator[ModelError]:
    """A name after FROM stands for one thing."""
    for name, path, _ in sources_of(tree):
        if not is_topic_name(name):
            text = f"'{brief(name)}' is not a name of a source"
            yield ModelError(text, place(tree, path), TOPIC_NAMES)
        for section, what in (("topics", "a topic"), ("relations", "a relation")):
            if tree.get(section, name) is not None:
                yield ModelError(
                    f"'{brief(name)}' is both a source and {what}",
                    place(tree, path),
                    "give one of them another name"
                    if section == "relations"
                    else f"write all of it under sources.{brief(name)}, or rename the source",
                )
        for at, output in outputs_of(tree):
            if text_at(output, "topic") == name:
                yield ModelError(
                    f"source '{brief(name)}' is called as the topic that the pipeline writes",
                    place(tree, (*at, "topic")),
                    "give one of them another name",
                )


def records_of_sources(tree: Entries) -> Iterator[ModelError]:
    """Records of sources have no keys and no headers, whichever way they are read; but for those of
    a topic behind phases."""
    for name, path, said in (*sources_of(tree), *_readings(tree)):
        called = brief(name)
        keyed = is_said(said, "primary_key") or "primary_key" in said.misspelled
        if is_table(said) and not keyed:
            yield ModelError(
                f"the table '{called}' has no key: records of a source have none of their own",
                place(tree, (*path, "table")),
                "add primary_key: [<column>]",
            )
        topic_follows = text_at(said, "type") == "hybrid" and is_said(said, "topic")
        if (text_at(said, "operation") or "").startswith("header:") and not topic_follows:
            yield ModelError(
                f"the operation of '{called}' cannot be in a header: records of a source have none",
                place(tree, (*path, "operation")),
                "write operation: column:<name>",
            )


def places_of_webhooks(tree: Entries) -> Iterator[ModelError]:
    """A request belongs to one source."""
    first: dict[tuple[str | None, str], str] = {}
    for name, path, said in sources_of(tree):
        if text_at(said, "type") == "webhook":
            where = text_at(said, "listen"), text_at(said, "path") or "/"
            other = first.setdefault(where, name)
            if other != name:
                yield ModelError(
                    f"'{brief(other)}' and '{brief(name)}' take the same requests, to "
                    f"{where[0]}{where[1]}",
                    place(tree, (*path, "path")),
                    "give one of them another path",
                )


def settings_of_sources(tree: Entries) -> Iterator[ModelError]:
    """Not every setting fits every kind."""
    for name, path, said in sources_of(tree):
        called, kind = brief(name), text_at(said, "type")
        if kind == "files" and is_said(said, "header") and text_at(said, "format") != "csv":
            yield ModelError(
                f"'header' of '{called}' is only for format: csv",
                place(tree, (*path, "header")),
                "remove it: other formats name their columns themselves",
            )
        folder = text_at(said, "path") or ""
        if kind == "files" and "://" in folder and not folder.startswith(_STORES):
            yield ModelError(
                f"'{brief(folder)}' is not where files of '{called}' can be",
                place(tree, (*path, "path")),
                "write the path of a folder, or s3://<bucket>/<folder>",
            )
        if kind == "generator":
            yield from _distributions(tree, path, said)
        if kind in _FIRST and not is_said(said, "columns") and not said.misspelled:
            yield ModelError(
                f"the columns of '{called}' are not known: no {_FIRST[kind]} has come yet",
                place(tree, path),
                "add columns: {<name>: <type>}",
            )
        if kind == "mqtt":
            yield from _logins(tree, path, said, called)


def sessions_of_brokers(tree: Entries) -> Iterator[ModelError]:
    """A broker keeps messages for one client of a name."""
    first: dict[tuple[str | None, str], str] = {}
    for name, path, said in sources_of(tree):
        client = text_at(said, "client_id")
        if text_at(said, "type") == "mqtt" and client is not None:
            other = first.setdefault((text_at(said, "broker"), client), name)
            if other != name:
                yield ModelError(
                    f"'{brief(other)}' and '{brief(name)}' are one client of the broker, "
                    f"'{brief(client)}': each would end the connection of the other",
                    place(tree, (*path, "client_id")),
                    "give one of them another client_id",
                )


def _logins(tree: Entries, path: Path, said: Entries, called: str) -> Iterator[ModelError]:
    if is_said(said, "password") and not is_said(said, "user"):
        yield ModelError(
            f"'password' of '{called}' is of no one",
            place(tree, (*path, "password")),
            "add user: <name>",
        )
    if is_said(said, "ca") and (text_at(said, "broker") or "").startswith("mqtt://"):
        yield ModelError(
            f"'ca' of '{called}' is only for a broker with TLS",
            place(tree, (*path, "ca")),
            "write broker: mqtts://host:8883, or remove it",
        )


def settings_of_attached(tree: Entries) -> Iterator[ModelError]:
    """A table that is looked up has no records."""
    for name, path, said in sources_of(tree):
        kind = text_at(said, "type")
        if kind not in ("postgres", *ATTACHED_ONLY):
            continue
        called, attached = brief(name), is_true(said, "attached")
        if kind in ATTACHED_ONLY and not attached and not said.misspelled:
            yield ModelError(
                f"the table '{called}' cannot be read as records: tables of {kind} are looked up",
                place(tree, (*path, "attached")),
                "add attached: true, and name it after LEFT JOIN or JOIN",
            )
        elif not attached and is_said(said, "refresh"):
            yield ModelError(
                f"'refresh' of '{called}' has no effect: the table is read, and not looked up",
                place(tree, (*path, "refresh")),
                "remove it, or add attached: true",
            )
        for entry in said.entries if attached else ():
            if entry.key not in _OF_ATTACHED and entry.key not in said.misspelled:
                yield ModelError(
                    f"'{brief(entry.key)}' of '{called}' has no effect: its rows are looked up, "
                    "and are no records",
                    place(tree, (*path, entry.key)),
                    "remove it" if kind in ATTACHED_ONLY else "remove it, or attached",
                )


def _distributions(tree: Entries, path: Path, said: Entries) -> Iterator[ModelError]:
    values = said.get("values")
    for entry in values.entries if isinstance(values, Entries) else ():
        if not isinstance(entry.value, Entries):
            continue
        at, kind = (*path, "values", entry.key), text_at(entry.value, "distribution")
        for key, kinds in _OF_DISTRIBUTIONS.items():
            if is_said(entry.value, key) and kind is not None and kind not in kinds:
                yield ModelError(
                    f"'{key}' of '{brief(entry.key)}' has no meaning for distribution: "
                    f"{brief(kind)}",
                    place(tree, (*at, key)),
                    f"remove it, or write distribution: {' or '.join(kinds)}",
                )
        if kind == "uniform" and _number(entry.value, "min", 0) > _number(entry.value, "max", 100):
            yield ModelError(
                f"'min' of '{brief(entry.key)}' is above its max",
                place(tree, at),
                "the values lie between both: min is 0 and max 100 unless it is said",
            )
        if kind == "choice" and not is_said(entry.value, "of") and not entry.value.misspelled:
            yield ModelError(
                f"'{brief(entry.key)}' has nothing to choose from",
                place(tree, (*at, "distribution")),
                "add of: [<value>, …]",
            )


def _number(said: Entries, key: str, default: float) -> float:
    """Return a number that is said; the default, too, where it is none, which is reported."""
    try:
        return float(text_at(said, key) or default)
    except ValueError:
        return default


def sources_of(tree: Entries) -> Iterator[tuple[str, Path, Entries]]:
    yield from _below(tree, "sources")


def _readings(tree: Entries) -> Iterator[tuple[str, Path, Entries]]:
    """Yield the relations that read a source in another way."""
    for name, path, said in _below(tree, "relations"):
        read = text_at(said, "topic")
        if read is not None and tree.get("sources", read) is not None:
            yield name, path, said


def _below(tree: Entries, section: str) -> Iterator[tuple[str, Path, Entries]]:
    said = tree.get(section)
    for entry in said.entries if isinstance(said, Entries) else ():
        if isinstance(entry.value, Entries):
            yield entry.key, (section, entry.key), entry.value
