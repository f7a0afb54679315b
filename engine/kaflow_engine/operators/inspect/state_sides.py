"""What the entries of a state are: each join's sides, and what it keeps of its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, assert_never

from kaflow_engine.flow.chains.chain import chain_of, chains, driving_of
from kaflow_engine.flow.chains.names import chain_called
from kaflow_engine.flow.edges import Driving, SideParams
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import aggregates, operator_of_state, side_name, source_of, throttles
from kaflow_engine.flow.operators import Aggregate, KeyedJoin, Ledger
from kaflow_engine.flow.tables import Materialize, TableJoin
from kaflow_engine.flow.timed import Runs, Throttle
from kaflow_engine.operators.aggregate.entries import GROUP, KEPT
from kaflow_engine.operators.keyed_state import DRIVER, EMITTED, KEYLESS, MATCH, WAITING
from kaflow_engine.operators.runs.kept_rows import HEAD
from kaflow_engine.operators.runs.kept_rows import ROW as ROWS
from kaflow_engine.operators.table.kept_rows import ROW
from kaflow_engine.operators.table.side_rows import ALONE
from kaflow_engine.operators.throttle.sent_keys import SENT
from kaflow_engine.state.keys import DUE

Kind = Literal[
    "dimension",
    "found",
    "events",
    "kept",
    "waiting",
    "matches",
    "keyless",
    "emitted",
    "accounts",
    "groups",
    "rows",
    "table",
    "left",
    "right",
    "throttled",
    "batch",
    "writers",
    "due",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSide:
    """Entries of one side byte of one operator."""

    step: int
    """The name of its state."""
    byte: int
    kind: Kind
    name: str
    """What a command line calls it: a topic, or the kind."""
    alias: str | None = None
    """Of the joined topic in the query."""

    @property
    def has_keys(self) -> bool:
        """Whether its entries are kept under a join key, or grouping values."""
        return self.kind not in ("keyless", "accounts", "due", "batch", "writers")

    def is_called(self, name: str) -> bool:
        """Tell whether a name means this side."""
        return name in (self.name, self.alias, self.kind)


def state_sides(flow: Flow) -> tuple[StateSide, ...]:
    """Return all sides of a flow, by state and side byte."""
    found: list[StateSide] = []
    for chain in sorted(chains(flow), key=lambda each: each.number):
        for join in chain.joins:
            for byte, side in enumerate(join.sides):
                found.append(
                    StateSide(
                        step=join.state,
                        byte=byte,
                        kind=_of_side(side),
                        name=side_name(flow, side),
                        alias=side.alias,
                    )
                )
            found += [_own(join.state, byte, kind) for byte, kind in _OWN]
        if chain.ledger is not None:
            state = chain.ledger.state
            found += [_own(state, 0, "accounts"), _own(state, DUE, "due")]
        for aggregate in aggregates(flow):
            if chain_of(flow, aggregate).number == chain.number:
                found += _of_groups(aggregate)
        for table in chain.tables:
            found += _of_table(flow, table)
        for runs in flow.operators:
            if isinstance(runs, Runs) and chain_of(flow, runs).number == chain.number:
                own: tuple[tuple[int, Kind], ...] = (
                    (ROWS, "batch"),
                    (HEAD, "writers"),
                    (DUE, "due"),
                )
                found += [_own(runs.state, byte, kind) for byte, kind in own]
        for throttle in throttles(flow):
            if chain_of(flow, throttle).number == chain.number:
                found += [_own(throttle.state, SENT, "throttled"), _own(throttle.state, DUE, "due")]
    return tuple(found)


def _of_side(side: SideParams) -> Kind:
    if side.rows is not None:
        return "found"
    return "dimension" if side.role == "dimension" else "events"


def _of_groups(aggregate: Aggregate) -> list[StateSide]:
    found = [_own(aggregate.state, GROUP, "groups")]
    if any(result.keeps for result in aggregate.results):
        found.append(_own(aggregate.state, KEPT, "rows"))
    if aggregate.window is not None or aggregate.ttl is not None:
        found.append(_own(aggregate.state, DUE, "due"))
    return found


def _of_table(flow: Flow, table: Materialize | TableJoin) -> list[StateSide]:
    match table:
        case Materialize(state=state, rows=Driving() as edge):
            name = source_of(flow, edge).name
            rows = StateSide(step=state, byte=ROW, kind="table", name=name, alias=edge.alias)
            due = [] if table.retain is None else [_own(state, DUE, "due")]
            return [rows, *due]
        case Materialize(state=state):
            return [_own(state, ROW, "table")]
        case TableJoin(state=state, sides=sides):
            both: tuple[Kind, Kind] = ("left", "right")
            rest = (
                StateSide(step=state, byte=ALONE + byte, kind=kind, name=f"{kind} without key")
                for byte, kind in enumerate(both)
                if sides[byte].preserved
            )
            return [*(_own(state, byte, kind) for byte, kind in enumerate(both)), *rest]
        case _:
            assert_never(table)


def driving_behind(flow: Flow, side: StateSide) -> Driving:
    """Return the edge along which the records come that make the rows of a side's chain."""
    return driving_of(flow, operator_of_state(flow, side.step))


def describe(side: StateSide, flow: Flow) -> str:
    """Say what the entries of a side are."""
    driving = f"records of '{source_of(flow, driving_behind(flow, side)).name}'"
    gathers = chain_of(flow, operator_of_state(flow, side.step)).gathers
    if gathers and isinstance(gathers[0], KeyedJoin):  # rows of groups come to the first one
        driving = f"rows of '{gathers[0].rows.input}'"
    match side.kind:
        case "dimension":
            return f"value of dimension '{side.name}'"
        case "found":
            return f"rows of '{side.name}' by a join key"
        case "events":
            return f"events of '{side.name}'"
        case "kept":
            return f"{driving}, kept for later matches"
        case "waiting":
            return "waiting rows"
        case "matches":
            return f"matches of kept {driving}"
        case "keyless":
            return f"{driving} without a join key"
        case "emitted":
            return "rows that are formed again when a dimension changes"
        case "accounts":
            return f"what became of {driving}"
        case "groups":
            return "what is kept of groups"
        case "rows":
            return "rows of groups"
        case "table":
            return (
                "rows of a joined table" if side.alias is None else f"rows of table '{side.name}'"
            )
        case "left" | "right":
            without = "" if side.name == side.kind else " without a join key"
            return f"rows of the {side.kind} table{without}"
        case "batch":
            return "rows of unfinished runs"
        case "writers":
            return "when unfinished runs are due"
        case "throttled":
            return "keys that sent a change, and changes that are held"
        case "due":
            return "index by due time"


def operator_called(state: int, flow: Flow) -> str:
    """Return what the operator of a state is called: `join <topics>`, or `ledger`; where there are
    several chains, also what its rows are for.
    """
    operator = operator_of_state(flow, state)
    chain = chain_of(flow, operator)
    whose = f" for {chain_called(flow, chain)}" if len(chains(flow)) > 1 else ""
    match operator:
        case Ledger():
            return f"ledger{whose}"
        case Aggregate(id=name) | Materialize(id=name) | TableJoin(id=name):
            return f"{name}{whose}"
        case Throttle(id=name) | Runs(id=name):
            return f"{name}{whose}"
        case KeyedJoin(sides=sides):
            names = dict.fromkeys(side_name(flow, side) for side in sides)
            return f"join {', '.join(names)}{whose}"
        case _:
            assert_never(operator)


def chosen_sides(
    flow: Flow, operator: int | None = None, name: str | None = None
) -> Sequence[StateSide]:
    """Return the sides that are asked for; the index by due time only if it is."""
    return [
        side
        for side in state_sides(flow)
        if operator in (None, side.step)
        and (side.is_called(name) if name is not None else side.kind != "due")
    ]


_OWN: tuple[tuple[int, Kind], ...] = (
    (DRIVER, "kept"),
    (WAITING, "waiting"),
    (MATCH, "matches"),
    (KEYLESS, "keyless"),
    (EMITTED, "emitted"),
    (DUE, "due"),
)


_OF_RUNS: tuple[tuple[int, Kind], ...] = ((ROWS, "batch"), (HEAD, "writers"), (DUE, "due"))


def _own(step: int, byte: int, kind: Kind) -> StateSide:
    return StateSide(step=step, byte=byte, kind=kind, name=kind)
