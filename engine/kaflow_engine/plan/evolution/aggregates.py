"""Aggregates of two plans: which goes on with the groups of which, and what that depends on."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from kaflow_engine.flow.chains.chain import Chain, chain_of, chains
from kaflow_engine.flow.chains.gathered import groups_before
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import (
    aggregates,
    entries_of,
    gathered_to,
    operator_of,
    projects_of,
    side_name,
    source_of,
)
from kaflow_engine.flow.numbers import AGGREGATES, STATES, TABLES, aggregate_state, with_states
from kaflow_engine.flow.operators import Aggregate, Project
from kaflow_engine.flow.tables import Append
from kaflow_engine.flow.transforms import IN, Transform

KEPT = (
    *("topic", "joins", "time", "where", "unnests"),
    *("keys", "window", "results", "leaves", "grace", "ttl", "branches", "timed"),
    "transforms",
)
"""What groups that are stored depend on. Late rows, and how changes leave, are of the present."""


def inherit_aggregates(old: Flow, new: Flow) -> Flow:
    """Return the new plan in which aggregates have the states of those that they go on with.

    Others get numbers that no aggregate of their chain has had.

    Args:
        old: The plan of the state.
        new: The plan that is to run, with the chains of the old one.
    """
    states: dict[str, int] = {}
    used = {*old.retired_states, *(each.state for each in aggregates(old))}
    for chain in chains(new):
        rest = _of_chain(new, chain)
        before = [each for each in aggregates(old) if each.state // STATES == chain.number]
        for known, each in _pairs(old, before, new, rest):
            states[each.id] = known.state
        places = (state % STATES for state in used if state // STATES == chain.number)
        last = max((place for place in places if place <= TABLES), default=AGGREGATES) - AGGREGATES
        added = [each for each in rest if each.id not in states]
        for number, each in enumerate(added, last + 1):
            states[each.id] = aggregate_state(chain.number, number)
    gone = {state for state in used if state // STATES not in new.retired} - {*states.values()}
    shards = {each.state: each.shard for each in aggregates(old)}
    made = with_states(new, states, retired=tuple(sorted(gone)))
    return _where_states_are(made, {name: shards[s] for name, s in states.items() if s in shards})


def _where_states_are(flow: Flow, shards: Mapping[str, str | None]) -> Flow:
    """Return a flow whose groups have the places that their states have, by the ids of aggregates;
    rows that are elsewhere travel to them."""
    found: dict[str, Aggregate] = {}
    for each in aggregates(flow):
        shard = shards.get(each.id, each.shard)
        last = gathered_to(flow, each)[:-1][-1:]
        before = [one.id for one in last if isinstance(one, Aggregate)]
        moved = any(found[name].shard != _planned(flow, name).shard for name in before)
        travels = each.exchange or moved or shard != each.shard
        found[each.id] = replace(each, shard=shard, exchange=travels)
    operators = tuple(found.get(each.id, each) for each in flow.operators)
    return replace(flow, operators=operators)


def _planned(flow: Flow, name: str) -> Aggregate:
    found = operator_of(flow, name)
    assert isinstance(found, Aggregate)
    return found


def _of_chain(flow: Flow, chain: Chain) -> list[Aggregate]:
    return [each for each in aggregates(flow) if chain_of(flow, each).number == chain.number]


def _pairs(
    old: Flow, before: Sequence[Aggregate], new: Flow, after: Sequence[Aggregate]
) -> Iterator[tuple[Aggregate, Aggregate]]:
    """Pair aggregates of one chain: first equal ones, then those of the same outputs."""
    left, rest = list(before), list(after)
    for alike in (_equal, _fed_alike):
        for each in tuple(rest):
            known = next((one for one in left if alike(old, one, new, each)), None)
            if known is not None:
                yield known, each
                left.remove(known)
                rest.remove(each)


def _equal(old: Flow, known: Aggregate, new: Flow, each: Aggregate) -> bool:
    return _kept(old, known) == _kept(new, each)


def _fed_alike(old: Flow, known: Aggregate, new: Flow, each: Aggregate) -> bool:
    alone = len(aggregates(old)) == len(aggregates(new)) == 1
    return alone or bool(_fed(old, known) & _fed(new, each))


def _fed(flow: Flow, aggregate: Aggregate) -> set[tuple[str, int, int]]:
    """Return the outputs that an aggregate feeds, with the branch, and its place before them; an
    aggregate that is looked up feeds none."""
    return {
        (sink.target, branch, place)
        for sink in flow.sinks
        for branch, project in enumerate(projects_of(flow, sink))
        for place, each in enumerate(groups_before(flow, project))
        if each.id == aggregate.id
    }


def documents_of(flow: Flow) -> list[dict[str, Any]]:
    """Return the aggregates of a flow as documents."""
    return [_document(flow, each) for each in aggregates(flow)]


def kept_of(
    documents: Sequence[Mapping[str, Any]], states: Collection[int]
) -> list[dict[str, Any]]:
    """Return of those documents that have one of some states what their groups depend on."""
    found = (
        {name: each[name] for name in ("state", "called", *KEPT) if name in each}
        for each in documents
    )
    return sorted((e for e in found if e["state"] in states), key=lambda each: each["state"])


def settled(
    old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Return documents without those differences that do no harm: what is kept may be kept longer,
    and other outputs may read it.

    When a group is due is looked up again when the time is up that was noted with it.
    """
    before = {each["state"]: each for each in old}

    def longer(each: Mapping[str, Any], name: str) -> bool:
        was, now = before[each["state"]][name], each[name]
        return was is not None and now is not None and was <= now

    return [
        {
            **each,
            "called": before[each["state"]]["called"],
            **{n: before[each["state"]][n] for n in ("grace", "ttl") if longer(each, n)},
        }
        if each["state"] in before
        else each
        for each in new
    ]


def called(flow: Flow, aggregate: Aggregate) -> str:
    """Return the name of an aggregate in messages: by the outputs that it feeds, else by its id."""
    fed = _fed(flow, aggregate)
    if not fed:
        return f"aggregate '{aggregate.id}'"
    names = dict.fromkeys(f"output '{target}'" for target, _, _ in sorted(fed))
    depth = max(place for _, _, place in fed)
    which = f" {depth + 1}" if depth else ""
    return f"aggregate{which} of {' and '.join(names)}"


def begun_and_dropped(old: Flow, new: Flow) -> Iterator[str]:
    """Yield what becomes of groups: those that are new begin empty, others go.

    Args:
        old: The plan of the state.
        new: The plan that goes on with it, as it inherits the state.
    """
    before = {each.state: each for each in aggregates(old)}
    after = {each.state: each for each in aggregates(new)}
    for state, each in before.items():
        if state not in after:
            yield f"{called(old, each)}: its groups are dropped"
    for state, each in after.items():
        known = before.get(state)
        if known is None and not each.retracts:
            yield f"{called(new, each)}: begins empty, and counts records from now on"
        elif known is not None and each.exchange and not known.exchange:
            yield (
                f"{called(new, each)}: its rows travel to its groups, which stay where they are; "
                "they were in one place before"
            )


def _kept(flow: Flow, aggregate: Aggregate) -> Mapping[str, Any]:
    found = _document(flow, aggregate)
    return {name: found.get(name) for name in KEPT}


def _document(flow: Flow, aggregate: Aggregate) -> dict[str, Any]:
    entry = operator_of(flow, aggregate.inputs[0])
    assert isinstance(entry, Project)
    chain = chain_of(flow, entry)
    first = entry in chain.ends
    selected = dict(zip((column.name for column, _ in entry.columns), entry.columns, strict=True))
    return {
        "state": aggregate.state,
        "called": called(flow, aggregate),
        "topic": source_of(flow, chain.driving).name,
        "joins": _joins(flow, chain) if first else _appended(flow, aggregate),
        "time": chain.joins[-1].time if first and chain.joins else None,
        "where": _conditions(chain.driving.filter if first else None, entry.where),
        "unnests": [asdict(each) for each in entry.unnests],
        "keys": [[asdict(column), sql] for column, sql in entry.columns[: len(aggregate.keys)]],
        "window": None if aggregate.window is None else asdict(aggregate.window),
        "results": [[asdict(result.column), result.sql] for result in aggregate.results]
        + [[asdict(selected[a.name][0]), selected[a.name][1]] for a in aggregate.arguments]
        + [[asdict(part.column), part.first, part.merge] for part in aggregate.accumulators],
        "leaves": aggregate.leaves,
        "each": aggregate.each,
        "grace": aggregate.grace,
        "on_late": aggregate.on_late,
        "delay": aggregate.delay,
        "ttl": aggregate.ttl,
        **({"transforms": made} if (made := _transformed(flow, aggregate)) else {}),
        **({"branches": others} if (others := _branches(flow, aggregate)) else {}),
        **({} if aggregate.exchange else {"exchange": False}),
        **({} if aggregate.shard is None else {"shard": aggregate.shard}),
        **({"timed": True} if aggregate.timed else {}),
    }


def _branches(flow: Flow, aggregate: Aggregate) -> list[str]:
    """Return in words what the rows of the other branches of a union are."""
    return [_branch(flow, entry) for entry in entries_of(flow, aggregate)[1:]]


def _branch(flow: Flow, entry: Project) -> str:
    chain = chain_of(flow, entry)
    first = entry in chain.ends
    joins = _joins(flow, chain) if first else []
    time = chain.joins[-1].time if first and chain.joins else None
    where = _conditions(chain.driving.filter if first else None, entry.where)
    parts = [
        source_of(flow, chain.driving).name,
        ", ".join(f"{sql} {column.type}" for column, sql in entry.columns),
        *(f"JOIN {' '.join(each)}" for each in joins),
        *([f"AT {time}"] if time else []),
        *([f"WHERE {' AND '.join(where)}"] if where else []),
        *(f"UNNEST {sql} WHERE {each.where}" for each in entry.unnests for _, sql in each.lists),
    ]
    return ": ".join(parts)


def _joins(flow: Flow, chain: Chain) -> list[list[str]]:
    """Return the sides without which rows would be others, or not as many."""
    return [
        [side.alias, side_name(flow, side), side.role, side.kind]
        for join in chain.joins
        for side in join.sides
        if side.kind == "INNER" or side.parts
    ]


def _appended(flow: Flow, aggregate: Aggregate) -> list[list[str]]:
    """Return which changes are counted, where they are rows of their own, and of which columns."""
    before = [e for e in gathered_to(flow, aggregate)[:-1] if not isinstance(e, Transform)][-1:]
    return [
        [each.id if not each.deletes else f"{each.id} with deletes", *_entry_of(flow, each)]
        for each in before
        if isinstance(each, Append)
    ]


def _transformed(flow: Flow, aggregate: Aggregate) -> list[list[str]]:
    """Return through which transforms rows come, behind what gathered them before."""
    found: list[list[str]] = []
    for each in reversed(gathered_to(flow, aggregate)[:-1]):
        if not isinstance(each, Transform):
            break
        found.insert(0, [each.params.decides, *_entry_of(flow, each)])
    return found


def _entry_of(flow: Flow, append: Append | Transform) -> list[str]:
    entry = operator_of(flow, append.inputs[0])
    assert isinstance(entry, Project)
    selected = [f"{sql} AS {column.name.removeprefix(IN)}" for column, sql in entry.columns]
    return sorted([*selected, *_conditions(entry.where)])


def _conditions(*texts: str | None) -> list[str]:
    """Return conditions in whatever place they are asked: with other outputs, it is another."""
    return sorted(part for text in texts if text for part in text.split(" AND "))
