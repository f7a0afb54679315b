"""Two plans → what differs between them, in words, and whether a state outlives them."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeAlias, cast

from kaflow_engine.errors import StateError
from kaflow_engine.model.columns import Column
from kaflow_engine.model.durations import LONGEST, format_duration
from kaflow_engine.operators.layout import is_gone
from kaflow_engine.operators.params import Plan
from kaflow_engine.plan.inherit import inherit, keeps_rows
from kaflow_engine.sql.shape import MATCHED

Document: TypeAlias = Mapping[str, Any]
"""A plan as JSON."""

WHOLE = "pipeline"
"""The part that everything belongs to which is no part of its own."""

WORDS: Mapping[str, str] = {
    "after": "columns that travel on",
    "avro_id": "id of the Avro schema",
    "avro_schema": "Avro schema",
    "before": "columns that arrive",
    "columns": "columns",
    "dead_letter_topic": "dead letter topic",
    "driving": "role",
    "emission": "emission type",
    "idle_timeout": "idle timeout",
    "keep": "time that versions are kept",
    "last_exchange": "exchange by output key",
    "max_future": "greatest time ahead",
    "needs": "columns that must not be NULL",
    "next_key": "key of the next step",
    "on_data_loss": "treatment of lost records",
    "on_error": "treatment of bad records",
    "on_expiry": "treatment of incomplete rows",
    "partitions": "state partitions",
    "pipeline": "id",
    "rank": "order among topics",
    "raw": "records whose bytes travel along",
    "registry": "schema registry",
    "reemit": "emission on dimension updates",
    "require": "columns that must not be NULL",
    "sides": "order of sides",
    "tombstones": "deletion by null values",
    "ttl": "TTL",
}
"""Names of fields in words, where they differ from the field's own name."""

DURATIONS = frozenset({"ttl", "lateness", "idle_timeout", "max_future", "keep"})

Parts: TypeAlias = dict[str, dict[str, str]]
"""Part of a plan, in words, to its fields in words, to their values as text."""


WAY_OUT = "keep the file as it was, or give it a new `id:` to start afresh"

KEPT_OF_PLAN = ("pipeline",)
KEPT_OF_TOPIC = ("name", "event_time")
KEPT_OF_SIDE = ("alias", "topic", "role", "columns", "key", "filter", "lookup", "tombstones")
KEPT_OF_TABLE = ("name", "partition")
"""What every state depends on: how its keys and entries are written, and the clock of topics."""

ROWS_OF_PLAN = ("emission", "reemit", "ledger")
ROWS_OF_DRIVING = ("alias", "topic", "raw", "ttl")
ROWS_OF_STEP = ("before", "require")
"""What a state depends on in which rows of the driving side rest."""

WIDER: Mapping[str, Sequence[str]] = {
    "TINYINT": ("SMALLINT", "INTEGER", "BIGINT", "HUGEINT"),
    "SMALLINT": ("INTEGER", "BIGINT", "HUGEINT"),
    "INTEGER": ("BIGINT", "HUGEINT"),
    "BIGINT": ("HUGEINT",),
}
"""Types that read the text of another one as the same value."""


def change(old: Plan, new: Plan) -> None:
    """Let a state go on with a new plan, unless it depends on what differs.

    Args:
        old: The plan that the state was made for.
        new: The plan that is to run, as it inherits the state.

    Raises:
        StateError: The state does not fit the new plan; says why, and what can be done.
    """
    found = obstacles(old, new)
    if found:
        lines = "".join(f"\n  {line}" for line in found)
        raise StateError(
            f"the state of pipeline '{new.name}' was made for another plan:{lines}",
            hint=f"{WAY_OUT}, or let it be made anew: `kaflow plan PATH --approve {new.name}`; "
            "`kaflow plan` shows this before a run",
        )


def obstacles(old: Plan, new: Plan) -> tuple[str, ...]:
    """Return those differences with which a state cannot go on.

    Args:
        old: The plan of the state.
        new: The plan that is to run, as it inherits the state.
    """
    new = inherit(old, new)
    rows = tuple(keeps_rows(old, step) for step in old.steps)
    before, after = _kept(asdict(old), rows), _kept(_settled(asdict(old), asdict(new)), rows)
    if json.dumps(before) == json.dumps(after):
        return ()
    return differences(before, after) or ("columns are kept in another order",)


def _kept(plan: Document, rows: Sequence[bool]) -> Document:
    """Return what a state depends on, where rows rest in some of its steps."""
    kept: dict[str, Any] = {
        **_only(plan, KEPT_OF_PLAN),
        **_only(plan, ROWS_OF_PLAN if any(rows) else ()),
        "topics": [_only(topic, KEPT_OF_TOPIC) for topic in _list(plan, "topics")],
        "driving": _only(cast(Document, plan["driving"]), ROWS_OF_DRIVING if any(rows) else ()),
        "steps": [],
        "finish": {"table": _only(plan["finish"]["table"] or {}, KEPT_OF_TABLE)},
    }
    if any(rows[:1]):
        kept["driving"]["key"] = plan["driving"]["key"]
    for n, step in enumerate(_list(plan, "steps")):
        here = n < len(rows) and rows[n]
        kept["steps"].append(
            {
                **_only(step, ROWS_OF_STEP if here else ()),
                **_only(step, ("next_key",) if any(rows[n + 1 : n + 2]) else ()),
                "sides": [_kept_of_side(side, here) for side in _list(step, "sides")],
            }
        )
    return kept


def _kept_of_side(side: Document, rows: bool) -> Document:
    more = [
        *(["kind"] if rows else []),
        *(["ttl"] if side["role"] == "event" else []),
        *(["keep"] if side["lookup"] == "as_of" else []),
    ]
    return _only(side, (*KEPT_OF_SIDE, *more))


def _settled(old: Document, new: Document) -> Document:
    """Return a plan without those differences of stored columns that do no harm."""
    steps = [
        {
            **step,
            "before": _harmless(before["before"], step["before"]),
            "sides": [
                {**side, "columns": _harmless(known["columns"], side["columns"])}
                if known["alias"] == side["alias"]
                else side
                for known, side in zip(before["sides"], step["sides"], strict=False)
            ]
            + list(step["sides"][len(before["sides"]) :]),
        }
        for before, step in zip(old["steps"], new["steps"], strict=False)
    ]
    return {**new, "steps": [*steps, *new["steps"][len(steps) :]]}


def _harmless(old: Sequence[Document], new: Sequence[Document]) -> list[Document]:
    found = [
        before if is_gone(Column(**now)) or now["type"] in WIDER.get(before["type"], ()) else now
        for before, now in zip(old, new, strict=False)
    ]
    # of rows that rest, nobody noted whether a side that nobody asked about had matched
    return found + [column for column in new[len(old) :] if column["name"].endswith(MATCHED)]


def _only(part: Document, names: Sequence[str]) -> Document:
    return {name: part[name] for name in names if name in part}


def differences(old: Document, new: Document) -> tuple[str, ...]:
    """Return one line for each thing that was added, removed or changed.

    Args:
        old: The plan that state was made for, as JSON.
        new: The plan that is to run.
    """
    before, after = _parts(old), _parts(new)
    lines: list[str] = []
    for part in dict.fromkeys([*before, *after]):
        if part not in after:
            lines.append(f"{part} was removed")
        elif part not in before:
            lines.append(f"{part} was added")
        else:
            lines += _changes(part, before[part], after[part])
    return tuple(lines)


def _changes(part: str, before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    whose = "" if part == WHOLE else f"{part}: "
    for field in dict.fromkeys([*before, *after]):
        old, new = before.get(field), after.get(field)
        if old == new:
            continue
        if new is None:
            yield f"{whose}{field} was removed"
        elif old is None:
            yield f"{whose}{field} was added ({new})"
        else:
            yield f"{whose}{field} is {new}, was {old}"


def _parts(plan: Document) -> Parts:
    parts: Parts = {WHOLE: {}}
    topics = _list(plan, "topics")
    names = [str(topic["name"]) for topic in topics]
    for name, topic in zip(names, topics, strict=True):
        parts[f"topic '{name}'"] = _fields(topic, names, without=("name", "index"))
    driving = cast(Document, plan.get("driving", {}))
    parts["driving side"] = _fields(driving, names)
    for number, step in enumerate(_list(plan, "steps"), 1):
        aliases = ", ".join(str(side["alias"]) for side in _list(step, "sides"))
        parts[f"step {number}"] = {
            **_fields(step, names, without=("sides",)),
            WORDS["sides"]: aliases,
        }
        for side in _list(step, "sides"):
            parts[f"step {number}, side '{side['alias']}'"] = _fields(side, names)
    finish = cast(Document, plan.get("finish", {}))
    parts["output"] = _fields(finish, names, without=("outputs", "table"))
    parts["output"] |= _table(cast(Document, finish.get("table") or {}))
    for column, sql in cast(Sequence[tuple[Document, str]], finish.get("outputs", ())):
        parts["output"][f"column '{column['name']}'"] = f"{column['type']} {_plain(sql)}"
    apart = ("topics", "driving", "steps", "finish")
    parts[WHOLE] = _fields(plan, names, without=apart)
    return parts


def _table(table: Document) -> dict[str, str]:
    if not table:
        return {}
    columns = cast(Sequence[Document], table["columns"])
    return {
        "table": f"'{table['name']}' at {table['path']}",
        "table partitions": str(table["partition"]),
        "interval": format_duration(cast(int, table["interval"])),
        **{f"table column '{column['name']}'": str(column["type"]) for column in columns},
    }


def _fields(part: Document, topics: Sequence[str], without: Sequence[str] = ()) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in part.items():
        if name in without:
            continue
        word = WORDS.get(name, name.replace("_", " "))
        if name == "topic" and isinstance(value, int):
            found[word] = f"'{topics[value]}'"
        elif name in ("columns", "before", "after"):
            kind = "column" if name == "columns" else f"column {name} it"
            for column in cast(Sequence[Document], value or ()):
                if is_gone(Column(column["name"], column["type"])):
                    continue
                found[f"{kind} '{column['name']}'"] = str(column["type"])
        else:
            found[word] = _shown(name, value)
    return found


def _shown(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if name in DURATIONS and isinstance(value, int):
        return "for ever" if value > LONGEST else format_duration(value)
    if name == "registry":
        return re.sub(r"//[^/@']*@", "//", str(value))  # without credentials
    if isinstance(value, Mapping):  # the history of a topic
        where = cast(Document, value)
        return f"{where['path']} ({where['format']})"
    if value is None:
        return "not set"
    return _plain(value) if isinstance(value, str) else str(value)


def _plain(sql: str) -> str:
    return sql.replace('"', "")


def _list(part: Document, name: str) -> Sequence[Document]:
    return cast(Sequence[Document], part.get(name, ()))
