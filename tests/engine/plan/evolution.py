"""Pairs of pipeline files: what a change of a file does with the state that is there."""

from dataclasses import dataclass, field

from kaflow_engine.errors import Location
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.loader import pipeline_from_mapping
from kaflow_engine.operators.params import Plan
from kaflow_engine.plan.build import build_plan
from kaflow_engine.plan.verdict import Status
from kaflow_engine.sql.read import topics_of

COLUMNS = {
    "events": {"id": "VARCHAR", "n": "INTEGER", "other": "VARCHAR"},
    "names": {"id": "VARCHAR", "name": "VARCHAR", "tier": "VARCHAR"},
    "clicks": {"id": "VARCHAR", "page": "VARCHAR", "n": "INTEGER"},
}

ENRICH = "SELECT e.id, d.name FROM events e LEFT JOIN names d ON e.id = d.id"
"""Nothing of the driving side rests: only the dimension is kept."""
PAIRS = "SELECT e.id, c.page FROM events e LEFT JOIN clicks c ON e.id = c.id"
"""Both sides rest, for their TTL."""
FILTERED = "(SELECT * FROM names WHERE tier = 'gold') d"
PLAIN = "SELECT e.id FROM events e"


@dataclass(frozen=True, kw_only=True)
class Change:
    """What is written instead, and what comes of it."""

    title: str
    query: str = ENRICH
    before: dict[str, object] = field(default_factory=dict)
    after: dict[str, object]
    columns: dict[str, dict[str, str]] = field(default_factory=dict)
    """Declared anew."""
    status: Status
    reason: str
    """One of the reasons, whole."""


SMART = {"emission": {"type": "smart", "require": ["name"]}}
CHANGES = [
    Change(title="nothing", after={}, status="unchanged", reason=""),
    Change(
        title="a description",
        after={"description": "x", "owners": ["a@b.c"]},
        status="unchanged",
        reason="",
    ),
    Change(
        title="a new name with the same id",
        after={"name": "q", "id": "p"},
        status="kept",
        reason="name is q, was p",
    ),
    Change(
        title="a column of the driving side, where none of it rests",
        after={"query": ENRICH.replace("d.name", "d.name, e.n")},
        status="kept",
        reason="output: column 'n' was added (INTEGER e.n)",
    ),
    Change(
        title="a column of the driving side, where it waits",
        before=SMART,
        after={"query": ENRICH.replace("d.name", "d.name, e.n")},
        status="migrated",
        reason="rows that wait have NULL for column 'e.n' if they are from before",
    ),
    Change(
        title="a column of a dimension",
        after={"query": ENRICH.replace("d.name", "d.name, d.tier")},
        status="migrated",
        reason="entries of dimension 'd' have NULL for column 'tier' if they are from before, "
        "until one replaces them",
    ),
    Change(
        title="a column of an event side",
        query=PAIRS,
        after={"query": PAIRS.replace("c.page", "c.page, c.n")},
        status="migrated",
        reason="records of event 'c' have NULL for column 'n' if they are from before",
    ),
    Change(
        title="a column less",
        query=ENRICH.replace("d.name", "d.name, d.tier"),
        after={"query": ENRICH},
        status="migrated",
        reason="entries of dimension 'd' keep column 'tier' no more",
    ),
    Change(
        title="a column that became wider",
        query=PAIRS.replace("c.page", "c.n"),
        after={},
        columns={"clicks": {"id": "VARCHAR", "n": "BIGINT"}},
        status="migrated",
        reason="records of event 'c' from before have 'n' as INTEGER, read as BIGINT",
    ),
    Change(
        title="a column of another type",
        query=PAIRS.replace("c.page", "c.n"),
        after={},
        columns={"clicks": {"id": "VARCHAR", "n": "VARCHAR"}},
        status="rebuild",
        reason="step 1, side 'c': column 'n' is VARCHAR, was INTEGER",
    ),
    Change(
        title="a filter of the driving side",
        before=SMART,
        after={"query": f"{ENRICH} WHERE e.n > 1"},
        status="kept",
        reason="driving side: filter is (e.n > 1), was not set",
    ),
    Change(
        title="a filter of the finished row",
        after={"query": f"{ENRICH} WHERE d.name <> 'x'"},
        status="kept",
        reason="output: where is (d.name <> 'x'), was not set",
    ),
    Change(
        title="a filter of a dimension",
        query=ENRICH.replace("names d", "(SELECT * FROM names) d"),
        after={"query": ENRICH.replace("names d", FILTERED)},
        status="rebuild",
        reason="step 1, side 'names': filter is (names.tier = 'gold'), was not set",
    ),
    Change(
        title="the TTL, where only a dimension is kept",
        after={"window": "2h"},
        status="kept",
        reason="driving side: TTL is 2h, was 1h",
    ),
    Change(
        title="the TTL of rows that wait",
        before=SMART,
        after={"window": "2h"},
        status="rebuild",
        reason="driving side: TTL is 2h, was 1h",
    ),
    Change(
        title="the TTL of an event side",
        query=PAIRS,
        after={"state": {"events": {"overrides": {"clicks": "90m"}}}},
        status="rebuild",
        reason="step 1, side 'c': TTL is 1h30m, was 1h",
    ),
    Change(
        title="the kind of a join with a dimension",
        after={"query": ENRICH.replace("LEFT", "INNER")},
        status="kept",
        reason="step 1, side 'd': kind is INNER, was LEFT",
    ),
    Change(
        title="the kind of a join with events",
        query=PAIRS,
        after={"query": PAIRS.replace("LEFT", "INNER")},
        status="rebuild",
        reason="step 1, side 'c': kind is INNER, was LEFT",
    ),
    Change(
        title="the driving key of a lookup",
        after={"query": ENRICH.replace("ON e.id", "ON e.other")},
        status="kept",
        reason="driving side: key is CAST(CAST(e.other AS VARCHAR) AS VARCHAR), was "
        "CAST(CAST(e.id AS VARCHAR) AS VARCHAR)",
    ),
    Change(
        title="the driving key of rows that wait",
        before=SMART,
        after={"query": ENRICH.replace("ON e.id", "ON e.other")},
        status="rebuild",
        reason="driving side: key is CAST(CAST(e.other AS VARCHAR) AS VARCHAR), was "
        "CAST(CAST(e.id AS VARCHAR) AS VARCHAR)",
    ),
    Change(
        title="the key of a dimension",
        after={"query": ENRICH.replace("d.id", "d.name")},
        status="rebuild",
        reason="step 1, side 'd': key is CAST(CAST(d.name AS VARCHAR) AS VARCHAR), was "
        "CAST(CAST(d.id AS VARCHAR) AS VARCHAR)",
    ),
    Change(
        title="rows that wait from now on",
        after=SMART,
        status="kept",
        reason="emission type is smart, was immediate",
    ),
    Change(
        title="rows that wait no more",
        before=SMART,
        after={"emission": {"type": "immediate"}},
        status="rebuild",
        reason="emission type is immediate, was smart",
    ),
    Change(
        title="bytes for dead letters of rows that wait",
        before=SMART,
        after={"emission": {"type": "smart", "require": ["name"], "on_expiry": "dead_letter"}},
        status="rebuild",
        reason="driving side: records whose bytes travel along is TRUE, was not set",
    ),
    Change(
        title="what becomes of incomplete rows",
        before={**SMART, "output": {"topic": "o"}},
        after={"emission": {"type": "smart", "require": ["name"], "on_expiry": "emit"}},
        status="kept",
        reason="treatment of incomplete rows is emit, was drop",
    ),
    Change(
        title="other required columns",
        before=SMART,
        after={
            "query": ENRICH.replace("d.name", "d.name, d.tier"),
            "emission": {"type": "smart", "require": ["name", "tier"]},
        },
        status="rebuild",
        reason="step 1: columns that must not be NULL is (d.name) IS NOT NULL AND (d.tier) IS NOT "
        "NULL, was (d.name) IS NOT NULL",
    ),
    Change(
        title="the output topic",
        after={"output": {"topic": "o2", "key": "id"}},
        status="kept",
        reason="output: topic is o2, was o",
    ),
    Change(
        title="the output format",
        after={"output": {"topic": "o", "key": "id", "format": "avro"}},
        status="kept",
        reason="output: format is avro, was json",
    ),
    Change(
        title="the output key",
        after={"output": {"topic": "o", "key": "name"}},
        status="kept",
        reason="output: key is name, was id",
    ),
    Change(
        title="the delivery",
        before=SMART,
        after={"delivery": "at_least_once"},
        status="kept",
        reason="delivery is at_least_once, was exactly_once",
    ),
    Change(
        title="the clock of a topic",
        after={"topics": {"events": {"event_time": "n"}}},
        status="rebuild",
        reason="topic 'events': event time is CAST(c.n AS BIGINT), was not set",
    ),
    Change(
        title="another dimension",
        query=PLAIN,
        after={"query": ENRICH},
        status="rebuild",
        reason="topic 'names' was added",
    ),
    Change(
        title="a dimension that becomes events",
        after={"state": {"dimensions": []}},
        status="rebuild",
        reason="step 1, side 'd': role is event, was dimension",
    ),
    Change(
        title="emission when a dimension changes",
        after={"on_dimension_update": "reemit"},
        status="kept",
        reason="emission on dimension updates is on, was off",
    ),
    Change(
        title="partitions, which a state keeps",
        after={"partitions": 9},
        status="unchanged",
        reason="",
    ),
]


def plan_of(change: Change, *, after: bool) -> Plan:
    """Return the plan before or after a change."""
    given: dict[str, object] = {
        "name": "p",
        "query": change.query,
        "output": {"topic": "o", "key": "id"},
        "state": {"dimensions": ["names"]},
        "partitions": 2,
        **change.before,
        **(change.after if after else {}),
    }
    query = str(given["query"])
    at = Location("p.yaml")
    topics = topics_of(query, at)
    state = {**given["state"]} if isinstance(given["state"], dict) else {}
    state["dimensions"] = [t for t in state.get("dimensions", ()) if t in topics]
    given["state"] = state
    spec = pipeline_from_mapping(given, at, {})
    columns = {**COLUMNS, **(change.columns if after else {})}
    schemas = {t: tuple(Column(n, kind) for n, kind in columns[t].items()) for t in topics}
    return build_plan(spec, Config(), schemas).plan
