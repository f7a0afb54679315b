"""Compatibility of two plans: whether a state made for the first fits the second."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from kaflow_engine.errors import StateError
from kaflow_engine.flow.chains.chain import Chain, topics_of
from kaflow_engine.flow.flow import Flow
from kaflow_engine.model.columns import Column
from kaflow_engine.operators.rows.layout import is_gone
from kaflow_engine.plan.evolution.aggregates import kept_of, settled
from kaflow_engine.plan.evolution.chain import Document, chains_of, document_of, ends_of
from kaflow_engine.plan.evolution.clocks import other_times, several_times
from kaflow_engine.plan.evolution.diff_text import differences
from kaflow_engine.plan.evolution.evolution import has_joins_of, inherit, keeps_rows, pairs_of
from kaflow_engine.plan.evolution.left_behind import left_behind
from kaflow_engine.plan.evolution.sources import other_sources
from kaflow_engine.sql.shape import MATCHED

WAY_OUT = "keep the file as it was, or give it a new `id:` to start afresh"

KEPT_OF_PLAN = ("pipeline",)
KEPT_OF_TOPIC = ("name", "event_time")
KEPT_OF_SIDE = (
    *("alias", "topic", "role", "columns", "key", "filter", "lookup", "tombstones"),
    "rows",
)
KEPT_OF_TABLE = ("name", "partition")
"""What every state depends on: how its keys and entries are written, and the clock of topics."""

ROWS_OF_PLAN = ("emission", "reemit")
ROWS_OF_CHAIN = ("ledger",)
ROWS_OF_DRIVING = ("alias", "topic", "raw", "ttl", "within")
ROWS_OF_STEP = ("before", "require")
"""What a state depends on in which rows of the driving side rest."""

WIDER: Mapping[str, Sequence[str]] = {
    "TINYINT": ("SMALLINT", "INTEGER", "BIGINT", "HUGEINT"),
    "SMALLINT": ("INTEGER", "BIGINT", "HUGEINT"),
    "INTEGER": ("BIGINT", "HUGEINT"),
    "BIGINT": ("HUGEINT",),
}
"""Types that read the text of another one as the same value."""
REORDERED = ("columns are kept in another order",)


def change(old: Flow, new: Flow) -> None:
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
            hint=f"{WAY_OUT}, or let it be rebuilt: `kaflow plan PATH --approve {new.name}`; "
            "`kaflow plan` shows this before a run",
        )


def obstacles(old: Flow, new: Flow) -> tuple[str, ...]:
    """Return those differences with which a state cannot go on.

    Args:
        old: The plan of the state.
        new: The plan that is to run, as it inherits the state.
    """
    new = inherit(old, new)
    pairs = pairs_of(old, new)
    was, now = document_of(old), document_of(new)
    resting = {a.number: tuple(keeps_rows(old, step) for step in a.joins) for a, _ in pairs}
    before = {number: chain for number, chain in chains_of(was).items() if number in resting}
    after = {number: chains_of(now)[number] for number in before}
    alike = {a.number for a, b in pairs if has_joins_of(a, b)}
    after = {
        number: _settled(before[number], chain, resting[number]) if number in alike else chain
        for number, chain in after.items()
    }
    tables = _shared_tables(was, now)
    groups = [list(plan.get("aggregates", ())) for plan in (was, now)]
    groups[1] = settled(*groups)
    stay = {e["state"] for e in groups[0]} & {e["state"] for e in groups[1]}
    several = several_times(old, new)
    kept = [
        {**_kept(plan, parts, resting, clocks, tables), **_kept_of_groups(some, stay)}
        for plan, parts, clocks, some in (
            (was, before, _clocks(old, new, [a for a, _ in pairs]) - several, groups[0]),
            (now, after, _clocks(new, old, [b for _, b in pairs], alike) - several, groups[1]),
        )
    ]
    if "chains" in was or "chains" in now:
        called = {
            number: chain["called"] or before[number]["called"] for number, chain in after.items()
        }
        kept = [_by_chain(plan, called) for plan in kept]
    else:
        kept = [_flat(plan) for plan in kept]
    found = () if json.dumps(kept[0]) == json.dumps(kept[1]) else differences(*kept) or REORDERED
    moved = (*other_sources(old, new), *other_times(old, new, pairs, several))
    return (*found, *moved, *left_behind(old, new))


def _clocks(
    flow: Flow, other: Flow, parts: Sequence[Chain], alike: Collection[int] = ()
) -> frozenset[str]:
    """Return the topics of a plan whose clocks matter: what the state knows was measured by them.

    Args:
        flow: The plan.
        other: The one that it is compared with.
        parts: Its chains that both have.
        alike: Numbers of chains that may join more dimensions than before.
    """
    known = {topic.name for topic in other.sources}
    reached = {
        topic.name
        for chain in parts
        for topic in topics_of(flow, chain)
        if not (chain.number in alike and topic.dimension)
    }
    return frozenset(reached | {topic.name for topic in flow.sources if topic.name in known})


def _shared_tables(old: Document, new: Document) -> frozenset[str] | None:
    """Return the tables that both plans write; None where each has one output.

    An output may come and go; a table that stays is filled by the same partitions.
    """
    if "finish" in old and "finish" in new:
        return None
    tables = [{name for name, end in ends_of(plan).items() if end["table"]} for plan in (old, new)]
    return frozenset(tables[0] & tables[1])


def _kept(
    plan: Document,
    parts: Mapping[int, Document],
    resting: Mapping[int, Sequence[bool]],
    clocks: Collection[str],
    tables: frozenset[str] | None,
) -> dict[str, Any]:
    """Return what a state depends on.

    Args:
        plan: The document.
        parts: The chains that matter, by number.
        resting: Of each, in which of its steps rows of the driving side rest.
        clocks: The topics that matter.
        tables: The outputs that matter, by name; None: the only one does.
    """
    names = [topic["name"] for topic in plan["topics"]]
    return {
        **_only(plan, KEPT_OF_PLAN),
        **_only(plan, ROWS_OF_PLAN if any(any(rows) for rows in resting.values()) else ()),
        "topics": [
            _only(topic, KEPT_OF_TOPIC) for topic in plan["topics"] if topic["name"] in clocks
        ],
        "chains": {
            number: _kept_of_chain(chain, resting[number], names) for number, chain in parts.items()
        },
        **_kept_of_ends(plan, tables),
    }


def _flat(plan: dict[str, Any]) -> Document:
    """Return what is kept of a plan of one chain as its document is written."""
    (chain,) = plan.pop("chains").values()
    return {**plan, **chain}


def _by_chain(plan: dict[str, Any], called: Mapping[int, str]) -> Document:
    """Return what is kept of a plan of several chains; they are called as they are now."""
    several = [
        {**chain, "number": number, "called": called[number]}
        for number, chain in plan.pop("chains").items()
    ]
    return {**plan, "chains": several}


def _read_by(side: Document, names: Sequence[str]) -> str:
    """Return what a side reads: a topic, or the table that it looks up."""
    found: int | str = side["topic"]
    return found if isinstance(found, str) else names[found]


def _kept_of_chain(chain: Document, rows: Sequence[bool], names: Sequence[str]) -> Document:
    driving = {**chain["driving"], "topic": names[chain["driving"]["topic"]]}
    steps: list[Document] = []
    for n, step in enumerate(chain["steps"]):
        here = n < len(rows) and rows[n]
        sides = [{**side, "topic": _read_by(side, names)} for side in step["sides"]]
        steps.append(
            {
                **_only(step, ROWS_OF_STEP if here else ()),
                **_only(step, ("next_key",) if any(rows[n + 1 : n + 2]) else ()),
                "sides": [_kept_of_side(side, here) for side in sides],
            }
        )
    return {
        **_only(chain, ROWS_OF_CHAIN if any(rows) else ()),
        "driving": {
            **_only(driving, ROWS_OF_DRIVING if any(rows) else ()),
            **_only(driving, ("key",) if any(rows[:1]) else ()),
        },
        "steps": steps,
    }


def _kept_of_ends(plan: Document, tables: frozenset[str] | None) -> Document:
    if tables is None:
        return {"finish": {"table": _only(plan["finish"]["table"] or {}, KEPT_OF_TABLE)}}
    ends = ends_of(plan)
    return {
        "outputs": {
            name: {"table": _only(ends[name]["table"], KEPT_OF_TABLE)} for name in sorted(tables)
        }
    }


def _kept_of_groups(documents: Sequence[Document], states: Collection[int]) -> Document:
    found = kept_of(documents, states)
    return {"aggregates": found} if found else {}


def _kept_of_side(side: Document, rows: bool) -> Document:
    more = [
        *(["kind"] if rows else []),
        *(["ttl"] if side["role"] == "event" else []),
        *(["keep"] if side["lookup"] == "as_of" else []),
    ]
    found = _only(side, (*KEPT_OF_SIDE, *more))
    return {**found, "lookup": "current"} if found["lookup"] == "before" else found


def _settled(old: Document, new: Document, rows: Sequence[bool]) -> Document:
    """Return a chain without those differences that do no harm: stored columns, more dimensions.

    Nothing is stored of a dimension that is new, and it is loaded before events go on. Where rows
    rest, it must not be one that they have to wait for; where they rest behind it, none that makes
    several rows of one.
    """
    steps: list[Document] = []
    for n, step in enumerate(new["steps"]):
        if n >= len(old["steps"]):
            if any(rows) or any(side["role"] == "event" for side in step["sides"]):
                steps.append(step)
            continue
        known = old["steps"][n]
        sides = [
            {
                **side,
                "columns": _harmless(before["columns"], side["columns"]),
                "ttl": before["ttl"] if _lasts_longer(before, side, old) else side["ttl"],
            }
            for before, side in zip(known["sides"], step["sides"], strict=False)
        ]
        more = [
            side
            for side in step["sides"][len(sides) :]
            if side["role"] == "event"
            or (rows[n] and side["kind"] == "INNER")
            or (any(rows[n + 1 :]) and "rows" in side)  # rows that wait have no place for it
        ]
        before = _harmless(known["before"], step["before"])
        steps.append({**step, "before": before, "sides": [*sides, *more]})
    driving, before = new["driving"], old["driving"]
    if before["raw"] == "TRUE" or driving["raw"] is None:  # no more bytes are wanted than were kept
        driving = {**driving, "raw": before["raw"]}
    if _lasts_longer(before, driving, old):
        driving = {**driving, "ttl": before["ttl"]}
    return {**new, "steps": steps, "driving": driving}


def _lasts_longer(old: Document, new: Document, chain: Document) -> bool:
    """Tell whether a longer TTL may be given to what rests; the ledger knows only the old one."""
    return old["ttl"] <= new["ttl"] and not chain["ledger"]


def _harmless(old: Sequence[Document], new: Sequence[Document]) -> list[Document]:
    found = [
        before if is_gone(Column(**now)) or now["type"] in WIDER.get(before["type"], ()) else now
        for before, now in zip(old, new, strict=False)
    ]
    # Stored rows hold no match flag for sides that the old plan did not read.
    return found + [column for column in new[len(old) :] if column["name"].endswith(MATCHED)]


def _only(part: Document, names: Sequence[str]) -> Document:
    return {name: part[name] for name in names if name in part}
