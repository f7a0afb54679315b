"""From a pipeline mapping, as an author writes it, to what the oracle is told."""

import re
from collections.abc import Mapping
from typing import Any

from tests.reference.pipeline import DAY, HOUR, OraclePipeline, Topic, Write
from tests.reference.query import read_query
from tests.reference.unions import Columns, NotExpressible

_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": HOUR, "d": DAY, "w": 7 * DAY}


def duration(text: str) -> int:
    """Read `1h30m` as ms."""
    parts = re.findall(r"(\d+)(ms|[smhdw])", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(text)
    return sum(int(number) * _UNITS[unit] for number, unit in parts)


def oracle_pipeline(
    author: Mapping[str, Any],
    columns: Mapping[str, Mapping[str, str]] | None = None,
    *,
    default_ttl: int = HOUR,
    partitions: Mapping[str, int] | None = None,
) -> OraclePipeline:
    """Build the description of a pipeline mapping.

    Args:
        author: The mapping, as read from YAML.
        columns: Column types of topics that declare none.
        default_ttl: `state.ttl` of the configuration, in ms.
        partitions: Partitions by topic, 1 where not given.

    Raises:
        NotExpressible: where the query is beyond the oracle.
    """
    declared = {
        **(columns or {}),
        **{
            name: spec["columns"]
            for name, spec in author.get("topics", {}).items()
            if "columns" in spec
        },
    }
    if any("TIMESTAMP" in kind for types in declared.values() for kind in types.values()):
        raise NotExpressible("TIMESTAMP columns")
    writes = _read_writes(author, declared)
    names = {name for write in writes for name in write.chain.topics}
    emission = author.get("emission", {})
    return OraclePipeline(
        writes=writes,
        topics={
            name: _topic(name, author, declared[name], default_ttl, (partitions or {}).get(name, 1))
            for name in names
        },
        emission=emission.get("type", "immediate"),
        require=tuple(emission.get("require", ())),
        on_expiry=emission.get("on_expiry", "drop"),
        reemit=author.get("on_dimension_update") == "reemit",
    )


def _read_writes(author: Mapping[str, Any], columns: Columns) -> tuple[Write, ...]:
    """Return what each output writes, branch by branch."""
    relations = {name: spec["query"] for name, spec in author.get("relations", {}).items()}
    given = author.get("outputs") or [{"query": author["query"], **author["output"]}]
    queries = [
        read_query(output.get("query") or _named(output["from"], relations), columns, relations)
        for output in given
    ]
    return tuple(
        Write(
            topic=output["topic"],
            branch=branch,
            chain=query.chain,
            key=output.get("key", "_key" if query.sets_key else None),
            key_in_value="key" in output or not query.sets_key,
            select=query.select,
            where=query.where,
            unnests=query.unnests,
        )
        for output, branches in zip(given, queries, strict=True)
        for branch, query in enumerate(branches)
    )


def _named(name: str, relations: Mapping[str, str]) -> str:
    return relations.get(name) or f'SELECT * FROM "{name}"'


def _topic(
    name: str,
    author: Mapping[str, Any],
    columns: Mapping[str, str],
    default_ttl: int,
    partitions: int,
) -> Topic:
    state, spec = author.get("state", {}), author.get("topics", {}).get(name, {})
    events = state.get("events", {})
    ttls = [
        events.get("overrides", {}).get(name),
        events.get("default_ttl"),
        author.get("window"),
    ]
    return Topic(
        name=name,
        columns=columns,
        dimension=name in state.get("dimensions", ()),
        ttl=next((duration(ttl) for ttl in ttls if ttl is not None), default_ttl),
        event_time=spec.get("event_time"),
        lateness=duration(spec.get("lateness", "0s")),
        idle_timeout=duration(spec.get("idle_timeout", "30s")),
        max_future=duration(spec.get("max_future", "1d")),
        lookup=spec.get("lookup", "current"),
        history=duration(spec["history"]) if "history" in spec else None,
        key=spec.get("key"),
        partitions=partitions,
        on_error=spec.get("on_error", "dead_letter"),
        on_null=spec.get("on_null", "skip"),
    )
