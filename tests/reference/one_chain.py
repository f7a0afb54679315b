"""Runs one chain of a pipeline, record at a time."""

from collections import Counter
from collections.abc import Mapping
from math import inf
from typing import NamedTuple

from tests.reference.arrival import Arrivals, Stopped
from tests.reference.chain import OracleChain
from tests.reference.completeness import Completeness
from tests.reference.conditions import Values, passes
from tests.reference.finish import NotTaken, finish
from tests.reference.looked_up import Changes
from tests.reference.memory import Memory
from tests.reference.records import DeadLetter, Emitted, Fact, Record
from tests.reference.rows import Combination, Driving, Retained, Row
from tests.reference.sides import Key, expired
from tests.reference.watermark import Watermark

CLASSES = ("emitted", "dead_letter", "waiting", "filtered", "expired", "skipped")


Kept = list[tuple[int, Retained]]
"""Rows that steps keep, each with the number of its step."""


class Out(NamedTuple):
    """A row that leaves."""

    branch: int
    """Place of its query in a union."""
    order: tuple[object, ...]
    emitted: Emitted
    record: Record
    """The one that drives."""


class OneChain:
    """Takes the records of all topics, and does what its own queries say."""

    def __init__(self, chain: OracleChain) -> None:
        self.watermark: float | None = None
        """At the start of the batch."""
        self._chain = chain
        self._steps = chain.steps
        self._complete = Completeness(chain)
        self._memory = Memory(chain)
        self._clock = Watermark(chain.event_topics())
        self._retained: list[list[Retained]] = [[] for _ in self._steps]
        self._driving: list[Driving] = []
        self._drives: dict[int, Driving] = {}
        self._out: list[tuple[int, Row, Emitted]] = []
        self._expiring: Kept = []
        self._dead: list[DeadLetter] = []

    def start_batch(self, last: bool) -> None:
        """Fix the watermark for one batch; after the last one everything is due."""
        self.watermark = inf if last else self._clock.value
        self._memory.start_batch(self.watermark)

    def receive(self, arrivals: Arrivals) -> None:
        """Note the driving records of a batch, bad and skipped ones too."""
        topic = self._chain.driving_topic
        for record, what in arrivals.refused:
            if record.topic == topic:
                self._driving.append(Driving(record, dead=what != "skipped"))
        for fact in arrivals.facts:
            if fact.record.topic == topic:
                driving = Driving(fact.record, fact)
                self._driving.append(driving)
                if fact.record.value is not None:
                    self._drives[id(fact)] = driving

    def take(self, fact: Fact, changes: Changes) -> list[Out]:
        """Take one record: update the sides, form rows, then let it drive."""
        touched = self._memory.update(fact, changes)
        for number, before in enumerate([list(step) for step in self._retained]):
            for retained in before:
                self._meet(number, retained, fact, touched)
        driving = self._drives.pop(id(fact), None)
        if driving is not None:
            self._drive(driving, fact)
        # Only now: on_expiry looks at all rows of a driving record together.
        kept, self._expiring = self._expiring, []
        for each in dict.fromkeys(retained.row.driving for _, retained in kept):
            own = [pair for pair in kept if pair[1].row.driving is each]
            self._expire(each, own, fresh=each is driving)
        return self._flush()

    def take_due(self) -> dict[Driving, Kept]:
        """Take away what is kept of driving records whose time is up."""
        due: dict[Driving, Kept] = {}
        for number, step in enumerate(self._retained):
            for retained in step:
                if expired(retained.row.driving.due, self.watermark):
                    due.setdefault(retained.row.driving, []).append((number, retained))
            step[:] = [r for r in step if not expired(r.row.driving.due, self.watermark)]
        return due

    def expire(self, driving: Driving, kept: Kept) -> list[Out]:
        """Settle what still waits of a driving record whose time is up."""
        self._expire(driving, kept, fresh=False)
        return self._flush()

    def end_batch(self, seen: Mapping[tuple[str, int], int], batch_time: int) -> list[DeadLetter]:
        """Move the watermark, and return the dead letters of the batch."""
        self._clock.advance(seen, batch_time)
        dead, self._dead = self._dead, []
        return dead

    @property
    def next_watermark(self) -> float | None:
        """The watermark of the next batch."""
        return self._clock.value

    @property
    def is_due(self) -> bool:
        """Tell whether the next batch will expire or decide a waiting row first."""
        return any(
            expired(retained.row.driving.due, self._clock.value)
            for step in self._retained
            for retained in step
            if retained.row.driving.waiting
        )

    @property
    def counters(self) -> Counter[str]:
        """Return totals of what the chain has counted."""
        classes = Counter(each.state for each in self._driving)
        late = sum(each.late for each in self._driving)
        own = Counter(read=len(self._driving), late=late)
        return own + classes + self._memory.counters

    def _flush(self) -> list[Out]:
        found, self._out = self._out, []
        return [
            Out(branch, row.order(self._chain), emitted, row.driving.record)
            for branch, row, emitted in found
        ]

    def _drive(self, driving: Driving, fact: Fact) -> None:
        driving.due = fact.ts + self._chain.ttl
        driving.late = expired(driving.due, self.watermark)
        values: Values = {self._chain.driving: fact.record.value}
        row = Row(driving=driving, fact=fact, values=values, members={})
        if not passes(self._chain.driving_where(), values):
            driving.filtered = True
        elif self._chain.emission == "final" or not self._complete.never(values):
            self._enter(0, row, fresh=True)
        elif self._gives_up(driving):
            self._enter(0, row, fresh=True, forced=True)

    def _enter(self, number: int, row: Row, *, fresh: bool, forced: bool = False) -> None:
        """Bring a row to a step: it leaves, waits or expires there."""
        step, driving = self._steps[number], row.driving
        key = tuple(column.of(row.values) for column in step.key)
        retained = Retained(row, key, self._memory.matches(step, key, row.fact))
        if retained.meets(step.anti):
            driving.filtered = True
            return
        formed = [retained.wait(members) for members in retained.all_members()]
        if forced:
            self._send_all(number, retained, fresh)
            return
        if self._chain.emission != "final":
            self._leave_if_complete(number, retained, formed, fresh)
        if self._chain.filters:
            driving.filtered |= retained.waits
            retained.drop()
        elif driving.late or (None in key and not self._complete.waits_keyless(step)):
            self._expiring.append((number, retained))
        else:
            self._retained[number].append(retained)

    def _meet(self, number: int, retained: Retained, fact: Fact, touched: dict[str, Key]) -> None:
        """Let a side record meet a row that a step keeps."""
        step = self._steps[number]
        sides = [
            join.alias
            for join in step.joins
            if join.alias in touched and touched[join.alias] == retained.key
        ]
        topic = self._chain.topics[fact.record.topic]
        emitted = [each for each in retained.combinations if each.last is not None]
        if sides and topic.dimension:
            self._dimension_came(number, retained, emitted)
        elif sides and self._chain.near(retained.row.fact.ts, topic.name, fact.ts):
            for alias in sides:
                retained.add(alias, fact)
            if retained.meets(step.anti):
                retained.drop()
                retained.row.driving.filtered = True
                return
            new = [members for members in retained.all_members() if fact in members]
            formed = [retained.wait(members) for members in new]
            if self._chain.emission != "final":
                self._leave_if_complete(number, retained, formed, fresh=False)

    def _dimension_came(self, number: int, retained: Retained, emitted: list[Combination]) -> None:
        if self._chain.emission == "final":
            return
        waiting = [each for each in retained.combinations if each.waits]
        self._leave_if_complete(number, retained, waiting, fresh=False)
        if not self._chain.reemit:
            return
        for combination in filter(retained.is_current, emitted):
            (row,) = self._forms(number, retained, combination, fresh=False)
            if self._complete.may_leave(self._steps[number], row.values):
                again = self._finish(row, unlike=combination.last)
                combination.last = again or combination.last

    def _leave_if_complete(
        self, number: int, retained: Retained, formed: list[Combination], fresh: bool
    ) -> None:
        for combination in formed:
            rows = self._forms(number, retained, combination, fresh)
            complete = [r for r in rows if self._complete.may_leave(self._steps[number], r.values)]
            if complete:
                retained.leave(combination)
            for row in complete:
                combination.last = self._pass_on(number, row, fresh, forced=False)

    def _expire(self, driving: Driving, kept: Kept, fresh: bool) -> None:
        """Settle what still waits of a driving record."""
        waiting = [(number, retained) for number, retained in kept if retained.waits]
        if not waiting:
            return
        sends = self._chain.emission == "final" or self._gives_up(driving)
        for number, retained in waiting:
            if sends:
                self._send_all(number, retained, fresh)
            else:
                retained.drop()

    def _gives_up(self, driving: Driving) -> bool:
        """Apply on_expiry to a driving record; tell whether its rows are still sent."""
        if self._chain.emission == "on_match" and not (driving.emitted or driving.filtered):
            return True
        if self._chain.emission == "smart" and not (driving.emitted or driving.filtered):
            if self._chain.on_expiry == "emit":
                return True
            if self._chain.on_expiry == "dead_letter":
                self._dead.append(driving.letter("expiry", self._chain.name))
                driving.dead = True
                return False
        driving.expired = True
        return False

    def _send_all(self, number: int, retained: Retained, fresh: bool) -> None:
        """Send waiting rows on as they are, save those with an unmatched INNER side."""
        for combination in [each for each in retained.combinations if each.waits]:
            retained.leave(combination)
            for row in self._forms(number, retained, combination, fresh):
                if self._complete.inner_matched(self._steps[number], row.values):
                    self._pass_on(number, row, fresh, forced=True)
                else:
                    row.driving.expired = True

    def _pass_on(self, number: int, row: Row, fresh: bool, forced: bool) -> Emitted | None:
        if number + 1 == len(self._steps):
            return self._finish(row)
        self._enter(number + 1, row, fresh=fresh, forced=forced)
        return None

    def _forms(
        self, number: int, retained: Retained, combination: Combination, fresh: bool
    ) -> list[Row]:
        """Form a row with the dimension values of this moment, or one with each row of a table."""
        row, step = retained.row, self._steps[number]
        members = dict(zip(retained.matches, combination.members, strict=True))
        latest = None if fresh else row.driving.due
        found = self._memory.look_up(step, retained.key, row.fact.ts, latest)
        return [row.joined(members, each) for each in found]

    def _finish(self, row: Row, unlike: Emitted | None = None) -> Emitted | None:
        """Give a finished row to the outputs, unless it equals the one before."""
        try:
            taken = finish(self._chain, row)
        except NotTaken as failure:
            return self._bad_row(row.driving, str(failure), unlike)
        if not taken:
            row.driving.filtered = True
        elif taken[0][1] != unlike:
            row.driving.emitted = True
            self._out.extend((branch, row, emitted) for branch, emitted in taken)
            return taken[0][1]
        return None

    def _bad_row(self, driving: Driving, phase: str, unlike: Emitted | None) -> None:
        """Charge a row to its driving record; what is only formed again leaves no trace."""
        on_error = self._chain.topics[self._chain.driving_topic].on_error
        if unlike is not None or on_error == "skip":
            return
        if on_error == "fail":
            raise Stopped(self._chain.driving_topic)
        self._dead.append(driving.letter(phase, self._chain.name))
        driving.dead = True
