"""Driving records and the combinations that are formed of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product

from tests.reference.chain import OracleChain
from tests.reference.memory import Found
from tests.reference.records import DeadLetter, Emitted, Fact, Record
from tests.reference.sides import Key

Members = tuple[Fact | None, ...]
"""One record per event side of a step; None: NULL."""


@dataclass(slots=True, eq=False)
class Driving:
    """A driving record and what has become of it."""

    record: Record
    fact: Fact | None = None
    due: int = 0
    late: bool = False
    emitted: bool = False
    dead: bool = False
    waiting: int = 0
    filtered: bool = False
    expired: bool = False

    @property
    def state(self) -> str:
        """The class of section 6: the first that fits."""
        fits = {
            "emitted": self.emitted,
            "dead_letter": self.dead,
            "waiting": self.waiting > 0,
            "filtered": self.filtered,
            "expired": self.expired,
        }
        return next((name for name, holds in fits.items() if holds), "skipped")

    def letter(self, phase: str, chain: str) -> DeadLetter:
        """The dead letter of this record in a chain."""
        record = self.record
        return DeadLetter(record.topic, record.partition, record.offset, phase, chain)

    def expiry_order(self) -> tuple[int, str, int, int]:
        """The order in which driving records expire at the start of a batch."""
        return (self.due, self.record.topic, self.record.partition, self.record.offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What is between two steps: the driving record and the sides it has met."""

    driving: Driving
    fact: Fact
    values: Mapping[str, Mapping[str, object] | None]
    members: Mapping[str, Fact | None]
    """The event sides."""
    places: Mapping[str, Key] = field(default_factory=dict[str, Key])
    """Of tables of which several rows may have the join key, the own key of the row."""

    def joined(self, members: Mapping[str, Fact | None], found: Found) -> "Row":
        """Return the row with what it has met in a step."""
        events = {alias: fact and fact.record.value for alias, fact in members.items()}
        return replace(
            self,
            values={**self.values, **events, **found.values},
            members={**self.members, **members},
            places={**self.places, **found.places},
        )

    def order(self, chain: OracleChain) -> tuple[object, ...]:
        """The position without its trigger: driving record, then the event sides and the rows of
        tables, step by step.

        NULL comes first.
        """
        joins = [join for step in chain.steps for join in step.joins]
        return (self.fact.position, *(self._place(join.alias) for join in joins))

    def _place(self, alias: str) -> tuple[object, ...]:
        side = self.members.get(alias)
        return self.places.get(alias, ()) if side is None else side.position


@dataclass(slots=True)
class Combination:
    """A row of the SQL product that was formed in a step: it waits, or has left."""

    members: Members
    waits: bool = True
    last: Emitted | None = None
    """What was emitted last, for reemit."""


@dataclass(slots=True, eq=False)
class Retained:
    """A row that a step keeps until its driving record expires."""

    row: Row
    key: Key
    matches: dict[str, list[Fact]]
    """By alias of the event sides, in order of position."""
    combinations: list[Combination] = field(default_factory=list[Combination])

    def all_members(self) -> list[Members]:
        """The SQL product of the matches, NULL for a side without any."""
        sides: list[list[Fact | None]] = [[*found] or [None] for found in self.matches.values()]
        return list(product(*sides))

    @property
    def waits(self) -> bool:
        """Tell whether a combination waits here."""
        return any(each.waits for each in self.combinations)

    def add(self, alias: str, fact: Fact) -> None:
        """Note a match; a waiting row that has NULL for the side is replaced."""
        place = list(self.matches).index(alias)
        self.matches[alias].append(fact)
        for combination in self.combinations:
            if combination.waits and combination.members[place] is None:
                self.leave(combination)

    def meets(self, aliases: Iterable[str]) -> bool:
        """Tell whether there is a match of one of these sides."""
        return any(self.matches.get(alias) for alias in aliases)

    def drop(self) -> None:
        """Give up what waits."""
        for combination in self.combinations:
            if combination.waits:
                self.leave(combination)

    def is_current(self, combination: Combination) -> bool:
        """Tell whether the product still holds the combination (a NULL is not superseded)."""
        return combination.members in self.all_members()

    def wait(self, members: Members) -> Combination:
        """Form a combination, waiting at first."""
        combination = Combination(members)
        self.combinations.append(combination)
        self.row.driving.waiting += 1
        return combination

    def leave(self, combination: Combination) -> None:
        """Let a waiting combination go."""
        combination.waits = False
        self.row.driving.waiting -= 1
