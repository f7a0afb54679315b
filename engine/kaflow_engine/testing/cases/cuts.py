"""How the records of a case are cut into batches."""

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, assert_never

from kaflow_engine.errors import ModelError
from kaflow_engine.testing.cases.specs import Advance, Case, Cut, Given, Item

CHANCE = 0.4
"""Of a random cut between two records."""


@dataclass(frozen=True, slots=True)
class Cuts:
    """A way to cut records into batches."""

    kind: Literal["given", "each", "all", "random"] = "given"
    tries: int = 1
    """How often random cuts are drawn."""

    @staticmethod
    def of(text: str) -> "Cuts":
        """Read `given`, `each`, `all` or `random:N`.

        Raises:
            ModelError: It is none of them.
        """
        match text:
            case "given" | "each" | "all":
                return Cuts(text)
            case _ if re.fullmatch(r"random:[1-9][0-9]{0,5}", text):
                return Cuts("random", int(text.removeprefix("random:")))
            case _:
                raise ModelError(f"unknown cuts '{text}'", None, "given, each, all or random:20")


GIVEN = Cuts()


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseBatch:
    """One batch of a case."""

    records: tuple[Given, ...]
    batch_time: int
    """Epoch milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CutCase:
    """The batches of a case, cut in one way."""

    how: str
    """For people: `given`, `each`, `all`, or which of the random cuts."""
    batches: tuple[CaseBatch, ...]
    as_given: bool


def cut(case: Case, cuts: Cuts) -> Iterator[CutCase]:
    """Cut a case; one that only holds as given is cut so, whatever is asked."""
    if case.spec.cuts == "given" or cuts.kind == "given":
        groups = _groups(case, lambda item: isinstance(item, Cut))
        yield CutCase(how="given", batches=_batches(case, groups), as_given=True)
        return
    for number in range(cuts.tries):
        match cuts.kind:
            case "each" | "all":
                how, chance = cuts.kind, 1.0 if cuts.kind == "each" else 0.0
            case "random":
                how, chance = f"random:{number + 1}", CHANCE
            case _:
                assert_never(cuts.kind)
        # Seeded by name and number, so that a failure can be seen again.
        draw = random.Random(f"{case.name}:{number}")
        groups = _groups(case, _drawn(draw, chance))
        yield CutCase(how=how, batches=_batches(case, groups), as_given=False)


def _drawn(draw: random.Random, chance: float) -> Callable[[Item], bool]:
    return lambda item: isinstance(item, Given) and draw.random() < chance


Group = tuple[Given, ...] | Advance


def _groups(case: Case, ends: Callable[[Item], bool]) -> list[Group]:
    """Group records; `ends` tells of what follows a record whether it ends the batch."""
    groups: list[Group] = []
    waiting: list[Given] = []
    for item in (*case.items, Advance(0)):
        if waiting and (isinstance(item, Advance) or ends(item)):
            groups.append(tuple(waiting))
            waiting = []
        match item:
            case Given():
                waiting.append(item)
            case Advance():
                groups.append(item)
            case Cut():
                pass
    return groups[:-1]


def _batches(case: Case, groups: Sequence[Group]) -> tuple[CaseBatch, ...]:
    time, advanced = case.spec.start, 0
    batches: list[CaseBatch] = []
    for group in groups:
        records: tuple[Given, ...] = ()
        if isinstance(group, Advance):
            advanced += group.milliseconds
        else:
            records = group
            if case.spec.start is None:
                latest = max(record.timestamp for record in records)
                time = latest if time is None else max(time, latest)
        batches.append(CaseBatch(records=records, batch_time=(time or 0) + advanced))
    return tuple(batches)
