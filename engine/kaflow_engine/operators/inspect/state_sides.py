"""What the entries of a state are: each step's sides, and what it keeps of its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from kaflow_engine.flow.plan import Plan
from kaflow_engine.operators.keyed_state import DRIVER, EMITTED, KEYLESS, MATCH, WAITING
from kaflow_engine.state.keys import DUE

Kind = Literal[
    "dimension", "events", "kept", "waiting", "matches", "keyless", "emitted", "accounts", "due"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSide:
    """Entries of one side byte of one step."""

    step: int
    byte: int
    kind: Kind
    name: str
    """What a command line calls it: a topic, or the kind."""
    alias: str | None = None
    """Of the joined topic in the query."""

    @property
    def has_keys(self) -> bool:
        """Whether its entries are kept under a join key."""
        return self.kind not in ("keyless", "accounts", "due")

    def is_called(self, name: str) -> bool:
        """Tell whether a name means this side."""
        return name in (self.name, self.alias, self.kind)


def state_sides(plan: Plan) -> tuple[StateSide, ...]:
    """Return all sides of a plan, by step and side byte."""
    found: list[StateSide] = []
    for step, params in enumerate(plan.steps, 1):
        for byte, side in enumerate(params.sides):
            found.append(
                StateSide(
                    step=step,
                    byte=byte,
                    kind="dimension" if side.role == "dimension" else "events",
                    name=plan.topics[side.topic].name,
                    alias=side.alias,
                )
            )
        found += [_own(step, byte, kind) for byte, kind in _OWN]
    if plan.ledger:
        ledger = len(plan.steps) + 1
        found += [_own(ledger, 0, "accounts"), _own(ledger, DUE, "due")]
    return tuple(found)


def describe(side: StateSide, plan: Plan) -> str:
    """Say what the entries of a side are."""
    driving = plan.topics[plan.driving.topic].name
    match side.kind:
        case "dimension":
            return f"value of dimension '{side.name}'"
        case "events":
            return f"events of '{side.name}'"
        case "kept":
            return f"records of '{driving}', kept for later matches"
        case "waiting":
            return "waiting rows"
        case "matches":
            return f"matches of kept records of '{driving}'"
        case "keyless":
            return f"records of '{driving}' without a join key"
        case "emitted":
            return "rows that are formed again when a dimension changes"
        case "accounts":
            return f"what became of records of '{driving}'"
        case "due":
            return "index by due time"


def operator_of(step: int, plan: Plan) -> str:
    """Return what a step is called: `join <topics>`, or `ledger`."""
    if step > len(plan.steps):
        return "ledger"
    names = dict.fromkeys(plan.topics[side.topic].name for side in plan.steps[step - 1].sides)
    return f"join {', '.join(names)}"


def chosen_sides(
    plan: Plan, operator: int | None = None, name: str | None = None
) -> Sequence[StateSide]:
    """Return the sides that are asked for; the index by due time only if it is."""
    return [
        side
        for side in state_sides(plan)
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


def _own(step: int, byte: int, kind: Kind) -> StateSide:
    return StateSide(step=step, byte=byte, kind=kind, name=kind)
