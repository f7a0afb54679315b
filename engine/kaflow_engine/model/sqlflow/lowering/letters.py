"""Where messages go that cannot be used."""

from dataclasses import dataclass

from kaflow_engine.model.brought.settings import Setting
from kaflow_engine.model.files.tree import Entry
from kaflow_engine.model.sqlflow.lowering.clusters import Clusters
from kaflow_engine.model.sqlflow.lowering.said import Mistakes, Said, entry, mapping
from kaflow_engine.model.sqlflow.lowering.sinks import connect_postgres
from kaflow_engine.model.sqlflow.sink_specs import KafkaSinkSpec, PostgresSpec

_PATH = ("pipeline", "on_error", "dlq")
_INSTEAD = (
    "write dlq: {type: kafka, kafka: {brokers: …, topic: …}}, or {type: postgres, postgres: {dsn: "
    "…, table: …}}; or leave dlq: out, and `kaflow dead-letters` shows them"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Letters:
    """Where they go."""

    entries: tuple[Entry, ...] = ()
    """Keys of a pipeline file."""
    settings: tuple[Setting, ...] = ()


def dead_letters(said: Said, clusters: Clusters, mistakes: Mistakes) -> Letters:
    """Return where messages go that cannot be used.

    Args:
        said: The file.
        clusters: Those of its source and of its sinks.
        mistakes: What is wrong is added.
    """
    policy = said.spec.pipeline.on_error
    if policy.policy != "DLQ" or policy.dlq is None:
        return Letters()
    kind = policy.dlq.type
    match getattr(policy.dlq, kind, None):
        case KafkaSinkSpec() as kafka:
            return _topic(said, kafka, clusters)
        case PostgresSpec() as postgres:
            return _table(said, postgres, mistakes)
        case None if kind in ("kafka", "postgres"):
            mistakes.add(
                f"'{'.'.join((*_PATH, kind))}' is required",
                said.at(*_PATH, "type"),
                f"say under {kind}: what is written",
            )
        case _:
            mistakes.add(
                f"messages that cannot be used do not go to {kind}",
                said.at(*_PATH),
                "write policy: IGNORE, which counts them" if kind == "noop" else _INSTEAD,
            )
    return Letters()


def _topic(said: Said, kafka: KafkaSinkSpec, clusters: Clusters) -> Letters:
    path = (*_PATH, "kafka")
    keys = [entry("topic", kafka.topic, said.at(*path, "topic"))]
    cluster = clusters.of(kafka, path, "dlq")
    if cluster:
        keys.append(entry("cluster", cluster, said.at(*path, "brokers")))
    at = said.at(*_PATH)
    return Letters(entries=(entry("dead_letters", mapping(at, *keys), at),))


def _table(said: Said, postgres: PostgresSpec, mistakes: Mistakes) -> Letters:
    at, path = said.at(*_PATH), (*_PATH, "postgres")
    if postgres.mode != "append" or postgres.key:
        mistakes.add(
            "messages that cannot be used do not replace each other",
            said.at(*path, "key" if postgres.key else "mode"),
            "remove mode and key: each of them is one more row",
        )
    connection, settings = connect_postgres(said, postgres, _PATH, mistakes)
    keys = mapping(
        at,
        entry("type", "postgres", at),
        entry("connection", connection, said.at(*path, "dsn")),
        entry("table", postgres.table, said.at(*path, "table")),
    )
    return Letters(entries=(entry("dead_letters", keys, at),), settings=settings)
