"""What the edges of flows mean, of one pipeline of each shape."""

from dataclasses import replace

import pytest

from kaflow_engine.flow.chains.chain import chains
from kaflow_engine.flow.fingerprints import state_fingerprint
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import (
    gathered_for,
    joins,
    joins_before,
    last_level,
    levels,
    operator_of,
    operator_of_state,
    projections,
    readers_of,
    sides_of,
    source_of,
    state_names,
    table_sinks,
    taker_of,
    target_of,
    topic_sinks,
)
from kaflow_engine.flow.operators import Decode, KeyedJoin
from kaflow_engine.flow.sinks import ConnectorSink, Setting
from kaflow_engine.model.columns import Column
from tests.engine.flow.stored_plans import NAMES, stored_plan

LEVELS = {
    "filter": {"decode:a": 0, "project:filter": 0, "sink:o": 0},
    "filter_by_key_avro": {"decode:a": 0, "project:filter_by_key_avro": 0, "sink:o": 1},
    "look_up": {"decode:a": 0, "decode:b": 0, "join:1": 1, "project:look_up": 1, "sink:o": 1},
    "final_events": {
        "decode:a": 0,
        "decode:b": 0,
        "join:1": 1,
        "project:final_events": 1,
        "sink:o": 1,
    },
    "reemit": {"decode:a": 0, "decode:b": 0, "join:1": 1, "project:reemit": 1, "sink:o": 1},
    "two_look_ups": {
        "decode:a": 0,
        "decode:b": 0,
        "decode:d": 0,
        "join:1": 1,
        "join:2": 2,
        "project:two_look_ups": 2,
        "sink:o": 3,
    },
    "ledger": {
        "decode:a": 0,
        "decode:b": 0,
        "decode:d": 0,
        "join:1": 1,
        "join:2": 2,
        "project:ledger": 2,
        "ledger": 3,
        "sink:o": 4,
    },
    "table": {"decode:a": 0, "decode:b": 0, "join:1": 1, "project:table": 1, "sink:t": 1},
}
STATES = {"two_look_ups": (1, 2), "ledger": (1, 2, 3), "filter": (), "filter_by_key_avro": ()}


def flow(name: str) -> Flow:
    return stored_plan(name).flow


def test_every_shape_is_here() -> None:
    assert set(LEVELS) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_levels_are_the_exchanges_before_an_operator(name: str) -> None:
    assert levels(flow(name)) == LEVELS[name]
    assert last_level(flow(name)) == max(LEVELS[name].values())


@pytest.mark.parametrize("name", NAMES)
def test_states_are_called_by_numbers(name: str) -> None:
    found = flow(name)
    assert state_names(found) == STATES.get(name, (1,))
    for state in state_names(found):
        assert operator_of_state(found, state).state == state


@pytest.mark.parametrize("name", NAMES)
def test_rows_name_where_they_go_by_place(name: str) -> None:
    found = flow(name)
    nodes = (*found.operators, *found.sinks)
    assert [target_of(found, node) for node in nodes] == list(range(len(nodes)))


@pytest.mark.parametrize("name", NAMES)
def test_the_driving_records(name: str) -> None:
    found = flow(name)
    (chain,) = chains(found)
    assert chain.driving.alias == "a"
    assert source_of(found, chain.driving).name == "a"
    (decode,) = (each for each in found.operators if each.id == "decode:a")
    assert isinstance(decode, Decode)
    (reader,) = readers_of(found, decode.id)
    assert reader.rows == chain.driving
    assert reader == (*joins(found), *projections(found))[0]


def test_sides_are_found_from_both_ends() -> None:
    found = flow("ledger")
    first, second = joins(found)
    assert joins_before(found, second) == (first,)
    assert joins_before(found, first) == ()
    decode = operator_of(found, "decode:d")
    assert isinstance(decode, Decode)
    assert sides_of(found, decode.id) == ((second, 0),)
    assert readers_of(found, decode.id) == ()
    assert source_of(found, second.sides[0]).name == "d"
    assert readers_of(found, first.id) == (second,)
    assert readers_of(found, second.id) == projections(found)


def test_a_ledger_stands_between_what_it_accounts_for_and_the_sink() -> None:
    found = flow("ledger")
    (chain,) = chains(found)
    ledger = chain.ledger
    assert ledger is not None
    assert ledger.inputs == ("join:1", "join:2", "project:ledger")
    assert found.sinks[0].inputs == ("project:ledger", "ledger")
    assert [chain.ledger for chain in chains(flow("two_look_ups"))] == [None]


def test_what_is_written() -> None:
    assert [sink.topic for sink in topic_sinks(flow("look_up"))] == ["o"]
    assert table_sinks(flow("look_up")) == topic_sinks(flow("table")) == ()
    assert [sink.table.name for sink in table_sinks(flow("table"))] == ["t"]


@pytest.mark.parametrize(("said", "expected"), [((), 0), ((("interval", 5_000),), 5_000)])
def test_rows_gather_as_long_as_a_sink_says(
    said: tuple[tuple[str, Setting], ...], expected: int
) -> None:
    assert gathered_for(flow("filter")) == 0
    table = flow("table")
    assert gathered_for(table) == table_sinks(table)[0].table.interval > 5_000
    files = ConnectorSink(
        id="f",
        inputs=(),
        exchange=False,
        key=None,
        kind="files",
        target="files:f",
        settings=said,
        columns=(),
    )
    assert gathered_for(replace(flow("filter"), sinks=(files,))) == expected


def test_each_projection_has_its_sink() -> None:
    found = flow("look_up")
    (project,), (sink,) = projections(found), found.sinks
    second = replace(project, id="project:p"), replace(sink, id="sink:p", inputs=("project:p",))
    both = replace(found, operators=(*found.operators, second[0]), sinks=(sink, second[1]))
    assert [taker_of(both, each).id for each in projections(both)] == ["sink:o", "sink:p"]
    assert readers_of(both, "join:1") == projections(both)
    (chain,) = chains(both)
    assert chain.projections == projections(both)


@pytest.mark.parametrize("name", NAMES)
def test_a_state_depends_on_its_operator_alone(name: str) -> None:
    found = flow(name)
    kept = {each.id: state_fingerprint(found, each) for each in found.operators}
    assert len([mark for mark in kept.values() if mark]) == len(state_names(found))
    other = replace(found, name="x", partitions=9, delivery="at_least_once", sinks=())
    assert kept == {each.id: state_fingerprint(other, each) for each in other.operators}


CHANGES = {
    "columns": {"before": (Column("a.id", "BIGINT"),)},
    "what must be there": {"require": "TRUE"},
    "sides": {"sides": ()},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_state_of_other_entries_has_another_fingerprint(change: dict[str, object]) -> None:
    found = flow("ledger")
    first, second = joins(found)
    changed = replace(first, **change)
    operators = tuple(changed if each == first else each for each in found.operators)
    other = replace(found, operators=operators)
    assert state_fingerprint(other, changed) != state_fingerprint(found, first)
    assert isinstance(second, KeyedJoin)
