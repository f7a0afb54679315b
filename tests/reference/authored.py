"""From a pipeline mapping, as an author writes it, to what the oracle is told."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.reference.beside import HEADERS, NONE, Headers, Traced
from tests.reference.conditions import Column
from tests.reference.delays import with_delays
from tests.reference.pipeline import DAY, HOUR, OraclePipeline, Topic, Within, Write
from tests.reference.query import read_query
from tests.reference.read_query import Query
from tests.reference.unions import Columns, NotExpressible

_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": HOUR, "d": DAY, "w": 7 * DAY}


def duration(text: str) -> int:
    """Read `1h30m` as ms."""
    parts = re.findall(r"(\d+)(ms|[smhdw])", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(text)
    return sum(int(number) * _UNITS[unit] for number, unit in parts)


def declared(author: Mapping[str, Any], columns: Columns | None) -> Columns:
    """Return the columns of topics, as the pipeline has them or as they are given beside it."""
    specs = author.get("topics", {}).items()
    return {
        **(columns or {}),
        **{name: spec["columns"] for name, spec in specs if "columns" in spec},
    }


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
    known = declared(author, columns)
    if any("TIMESTAMP" in kind for types in known.values() for kind in types.values()):
        raise NotExpressible("TIMESTAMP columns")
    writes = _read_writes(author, known)
    names = {name for write in writes for name in write.chain.topics}
    emission = author.get("emission", {})
    topics = {
        name: _topic(name, author, known[name], default_ttl, (partitions or {}).get(name, 1))
        for name in names
    }
    pipeline = OraclePipeline(
        writes=tuple(_emitted(write, author) for write in writes),
        topics=topics,
        emission=emission.get("type", "immediate"),
        require=tuple(emission.get("require", ())),
        on_expiry=emission.get("on_expiry", "drop"),
        reemit=author.get("on_dimension_update") == "reemit",
        within=_within(author["within"]) if "within" in author else None,
        latest=author.get("row_time") == "latest",
        before=author.get("lookup") == "before",
        implied="type" not in emission,
    )
    return with_delays(pipeline)


def _within(said: str | Mapping[str, Any]) -> Within:
    if "joins" in said:
        raise NotExpressible("times of single joins, which DuckDB joins in test_matches")
    if isinstance(said, str):
        return Within(before=duration(said), after=duration(said))
    return Within(**{name: duration(value) for name, value in said.items()})


def _read_writes(author: Mapping[str, Any], columns: Columns) -> tuple[Write, ...]:
    """Return what each output writes, branch by branch."""
    queries = [*author.get("relations", {}).values(), *author.get("outputs", ())]
    if any("batch" in spec for spec in queries):
        raise NotExpressible("runs of rows, which tests.reference.runs makes")
    if any("script" in spec for spec in queries):
        raise NotExpressible("what an engine makes of rows that knows scripts")
    if any(key in spec for spec in queries for key in ("emission", "within", "row_time")):
        raise NotExpressible("when the rows of one query leave")
    if any("aggregation" in spec for spec in queries):
        raise NotExpressible("how long the groups of one query last")
    relations = {name: spec["query"] for name, spec in author.get("relations", {}).items()}
    given = author.get("outputs") or [{"query": author["query"], **author["output"]}]
    read = [
        read_query(output.get("query") or _named(output["from"], relations), columns, relations)
        for output in given
    ]
    for output, branches in zip(given, read, strict=True):
        if "schema" in output and any(query.groups for query in branches):
            raise NotExpressible("results that a schema cannot hold")
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
            groups=query.groups,
            own_key=query.own_key,
            headers=_headers(output, query),
        )
        for output, branches in zip(given, read, strict=True)
        for branch, query in enumerate(branches)
    )


def _headers(output: Mapping[str, Any], query: Query) -> Headers | None:
    if not output.get("trace_context"):
        return query.headers
    return NONE if query.groups else Traced(Column(query.chain.driving, HEADERS))


def _emitted(write: Write, author: Mapping[str, Any]) -> Write:
    """Say how what is grouped leaves."""
    emission, settings = author.get("emission", {}), author.get("aggregation", {})
    given = author.get("outputs") or [author["output"]]
    (output,) = (each for each in given if each["topic"] == write.topic)
    late = emission.get("late_updates", False)
    changes = late or emission.get("type") == "immediate"
    groups = (
        replace(
            group,
            final=group.distinct
            or (group.window is not None and not (changes and group == write.groups[-1])),
            ended=late and group.window is not None and group == write.groups[-1],
            each=output.get("coalesce", emission.get("coalesce")) == "none",
            grace=duration(settings.get("grace", "0s")),
            ttl=duration(settings["ttl"]) if "ttl" in settings else None,
            on_late=settings.get("on_late", "drop"),
        )
        for group in write.groups
    )
    return replace(write, groups=tuple(groups))


def _named(name: str, relations: Mapping[str, str]) -> str:
    """Return the query of an output that writes a relation; a key that this makes may be NULL."""
    own = relations.get(name, "")
    return own if own and "AS _key" not in own else f'SELECT * FROM "{name}"'


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
        dimension=name in state.get("dimensions", ()) or spec.get("table", False),
        ttl=next((duration(ttl) for ttl in ttls if ttl is not None), default_ttl),
        event_time=spec.get("event_time"),
        lateness=duration(spec.get("lateness", "0s")),
        idle_timeout=duration(spec.get("idle_timeout", "30s")),
        max_future=duration(spec.get("max_future", "1d")),
        lookup=spec.get("lookup", "current"),
        history=duration(spec["history"]) if "history" in spec else None,
        key=spec.get("key") or (spec["primary_key"][0] if "primary_key" in spec else None),
        partitions=partitions,
        on_error=spec.get("on_error", "dead_letter"),
        on_null=spec.get("on_null", "skip"),
        primary=tuple(spec.get("primary_key", ["_key"])) if spec.get("table") else (),
    )
