"""Differences between two plans, in words."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from kaflow_engine.flow.windows import window_of, window_text
from kaflow_engine.model.columns import Column
from kaflow_engine.model.durations import format_duration
from kaflow_engine.operators.rows.layout import is_gone
from kaflow_engine.plan.evolution.chain import (
    ADDED_TO_FINISH,
    ADDED_TO_TOPICS,
    Document,
    chains_of,
    ends_of,
)
from kaflow_engine.plan.evolution.diff_words import WORDS, named, plain, shown

WHOLE = "pipeline"
"""The part that everything belongs to which is no part of its own."""

_OF_GROUPS = ("keys", "results", "window", "where", "unnests", "joins", "transforms")

SELECTED = ("unnests", "where", "outputs")
"""What of an output belongs to a SELECT, of which a union has several."""

Parts: TypeAlias = dict[str, dict[str, str]]
"""Part of a plan, in words, to its fields in words, to their values as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Naming:
    """What parts are called, which depends on both plans."""

    outputs: bool
    """Outputs are named."""
    chains: Mapping[int, str] | None
    """What chains are called that both have, by number; None: each has one."""
    aggregates: Mapping[int, str]
    """What aggregates are called that both have, by the names of their states."""
    unions: frozenset[str]
    """Outputs of which one of the plans writes a union."""


def differences(old: Document, new: Document) -> tuple[str, ...]:
    """Return one line for each thing that was added, removed or changed.

    Args:
        old: The plan that state was made for, as JSON.
        new: The plan that is to run.
    """
    both = (old, new)
    naming = _Naming(
        outputs=any("outputs" in plan for plan in both),
        chains=_called(old, new) if any("chains" in plan for plan in both) else None,
        aggregates={e["state"]: str(e["called"]) for p in both for e in _list(p, "aggregates")},
        unions=frozenset(
            name
            for plan in both
            for name, end in plan.get("outputs", {}).items()
            if "branches" in end
        ),
    )
    before, after = _parts(old, naming), _parts(new, naming)
    lines: list[str] = []
    for part in dict.fromkeys([*before, *after]):
        if part not in after:
            lines.append(f"{part} was removed")
        elif part not in before:
            lines.append(f"{part} was added")
        else:
            lines += _changes(part, before[part], after[part])
    return tuple(lines)


def _called(old: Document, new: Document) -> dict[int, str]:
    """Return what chains are called that are in both plans: as in the new one, if it says it."""
    known = chains_of(old)
    return {
        number: chain["called"] or known[number]["called"]
        for number, chain in chains_of(new).items()
        if number in known
    }


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


def _parts(plan: Document, naming: _Naming) -> Parts:
    parts: Parts = {WHOLE: {}}
    topics = [{**ADDED_TO_TOPICS, **topic} for topic in _list(plan, "topics")]
    names = [str(topic["name"]) for topic in topics]
    for name, topic in zip(names, topics, strict=True):
        parts[f"topic '{name}'"] = _fields(topic, names, without=("name", "index"))
    for number, chain in chains_of(plan).items():
        if naming.chains is None:
            parts |= _chain(chain, names, "")
        elif number in naming.chains:
            parts |= _chain(chain, names, f"{naming.chains[number]}, ")
    if naming.outputs:
        for name, end in ends_of(plan).items():
            parts |= _named_output(name, end, names, union=name in naming.unions)
    else:
        parts["output"] = _output(cast(Document, plan.get("finish", {})), names)
    parts |= _aggregates(plan, naming)
    for each in (*_list(plan, "runs"), *_list(plan, "transforms")):
        parts[str(each["called"])] = _fields(each, (), without=("called",))
    apart = ["aggregates", "runs", "transforms", "topics", "chain", "chains", "driving"]
    apart += ["steps", "finish", "outputs"]
    apart += ["last_exchange"] if naming.outputs else []
    apart += ["ledger"] if naming.chains is not None else []
    parts[WHOLE] = _fields(plan, names, without=apart)
    if naming.chains is not None:
        for number, called in naming.chains.items():
            ledger = chains_of(plan)[number].get("ledger")
            parts[f"{called}, rows"] = {"ledger": shown("ledger", ledger)}
    return parts


def _chain(chain: Document, topics: Sequence[str], whose: str) -> Parts:
    driving = cast(Document, chain.get("driving", {}))
    parts = {f"{whose}driving side": _fields(driving, topics)}
    for number, step in enumerate(_list(chain, "steps"), 1):
        aliases = ", ".join(str(side["alias"]) for side in _list(step, "sides"))
        parts[f"{whose}step {number}"] = {
            **_fields(step, topics, without=("sides",)),
            WORDS["sides"]: aliases,
        }
        for side in _list(step, "sides"):
            parts[f"{whose}step {number}, side '{side['alias']}'"] = _fields(side, topics)
    return parts


def _aggregates(plan: Document, naming: _Naming) -> Parts:
    parts: Parts = {}
    for each in _list(plan, "aggregates"):
        found = _fields(each, (), without=(*_OF_GROUPS, "state", "called"))
        found["groups"] = ", ".join(plain(sql) for _, sql in each["keys"]) or "none"
        for column, *sql in each["results"]:
            found[f"'{column['name']}'"] = " ".join([column["type"], *map(plain, sql)])
        window = each["window"]
        found["window"] = window_text(window_of(window)) if window else "none"
        found["WHERE"] = " AND ".join(map(plain, each["where"])) or "none"
        found["unnested lists"] = ", then ".join(_unnests(each)) or "none"
        if made := each.get("transforms"):
            found["what makes its rows"] = ", ".join(str(first) for first, *_ in made)
        found["joins"] = ", ".join(f"{kind} {alias}" for alias, _, _, kind in each["joins"])
        parts[naming.aggregates[each["state"]]] = found
    return parts


def _named_output(name: str, end: Document, topics: Sequence[str], *, union: bool) -> Parts:
    output = f"output '{name}'"
    if not union:
        return {output: _output(end, topics)}
    branches = end.get("branches") or [{field: end[field] for field in SELECTED if field in end}]
    whole = {field: value for field, value in end.items() if field not in (*SELECTED, "branches")}
    parts = {output: _output(whole, topics)}
    for number, branch in enumerate(branches, 1):
        parts[f"branch {number} of {output}"] = _end(branch, topics)
    return parts


def _output(end: Document, topics: Sequence[str]) -> dict[str, str]:
    return _end({**ADDED_TO_FINISH, **end}, topics)


def _end(end: Document, topics: Sequence[str]) -> dict[str, str]:
    found = _fields(end, topics, without=("outputs", "unnests", "table", "sink", "exchange"))
    if lists := list(_unnests(end)):
        found["unnested lists"] = ", then ".join(lists)
    found |= _table(cast(Document, end.get("table") or {}))
    found |= _sink(cast(Document, end.get("sink") or {}))
    for column, sql in cast(Sequence[tuple[Document, str]], end.get("outputs", ())):
        found[named("column", column["name"])] = f"{column['type']} {plain(sql)}"
    return found


def _unnests(end: Document) -> Iterator[str]:
    for unnest in _list(end, "unnests"):
        where = f" where {plain(unnest['where'])}" if unnest["where"] else ""
        pairs = cast(Sequence[tuple[str, str]], unnest["lists"])
        yield ", ".join(f"{plain(sql)} as {name}" for name, sql in pairs) + where


def _sink(sink: Document) -> dict[str, str]:
    if not sink:
        return {}
    settings = {name: shown(name, value) for name, value in sink["settings"]}
    return {"sink": f"'{sink['target']}'", **settings}


def _table(table: Document) -> dict[str, str]:
    if not table:
        return {}
    where = f" at {table['path']}" if "path" in table else ""
    found = {"table": f"'{table['name']}'{where}", "table partitions": str(table["partition"])}
    if "interval" in table:
        found["interval"] = format_duration(cast(int, table["interval"]))
    for column in _list(table, "columns"):
        found[f"table column '{column['name']}'"] = str(column["type"])
    return found


def _fields(part: Document, topics: Sequence[str], without: Sequence[str] = ()) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in part.items():
        if name in without:
            continue
        word = WORDS.get(name, name.replace("_", " "))
        if name == "topic" and isinstance(value, int):
            found[word] = f"'{topics[value]}'"
        elif name in ("columns", "record_columns", "before", "after"):
            kind = "column" if name.endswith("columns") else f"column {name} it"
            for column in cast(Sequence[Document], value or ()):
                if is_gone(Column(column["name"], column["type"])):
                    continue
                found[named(kind, column["name"])] = str(column["type"])
        else:
            found[word] = shown(name, value)
    return found


def _list(part: Document, name: str) -> Sequence[Document]:
    return cast(Sequence[Document], part.get(name, ()))
