"""The reference interpreter: record at a time, dictionaries, no care for speed.

Where the contract is silent or loose, the oracle (and the engine) follow these rules.

Time and order
- Skipped and bad records take no part in order time and watermark; tombstones do. A tombstone
  has its Kafka timestamp. Positions of different batches compare by batch first.
- A partition is idle from `last record + idle_timeout` on. When all are idle before the
  watermark had any value, its last value is the least over what was read.
- A pipeline that reads dimension topics only has no event topics: it follows batch time.

Event sides
- A match stays with its driving record until that expires, even when the matched entry expires
  earlier. An entry that is met in the store must not have expired at the start of the batch.
- A side record that has itself expired at the start of its batch meets what is retained, and is
  not retained; so a late record of a self-join does not meet itself.
- A combination is formed at the position of its last member, with NULL for a side only while no
  match of that side has come; a waiting one with that NULL is then deleted.
- Rows with the same trigger and driving record are ordered by the event sides, step by step and
  in a step as they are joined; NULL comes first.

Waiting and expiry
- Where a later step is INNER, or feeds something required (through keys of steps too), its key
  counts as required before it, in every mode but final. A row that can never become complete
  expires when it arrives; under final it waits for its decision.
- Expired rows under `emit` go through the later steps, late there, and leave incomplete.
  `dead_letter` sends one dead letter per driving record. `on_expiry` concerns smart only.
- Late driving records are counted before WHERE. Under final they are decided on arrival.

The rest
- A row without a key, or on which the SQL fails, is a dead letter (one per row), after WHERE. One
  that an output cannot take goes to none of them; it is filtered where no output took it.
- A condition is applied to driving records where all outputs have it. A key counts as required
  where all outputs have the same; a column, where `require` names it, in every output.
- Records with a NULL join key and ignored tombstones are counted once per side.
- reemit forms again what was emitted, but no NULL for a side that has been matched since.
"""

from collections import Counter
from itertools import count
from math import inf

from tests.reference.arrival import Stopped, arrive
from tests.reference.completeness import Completeness
from tests.reference.conditions import Values, passes
from tests.reference.finish import NotTaken, finish
from tests.reference.memory import Memory
from tests.reference.pipeline import OraclePipeline
from tests.reference.records import Batch, BatchResult, DeadLetter, Emitted, Fact
from tests.reference.rows import Combination, Driving, Retained, Row
from tests.reference.sides import Key, expired, pairs
from tests.reference.watermark import Watermark

CLASSES = ("emitted", "dead_letter", "waiting", "filtered", "expired", "skipped")


class Oracle:
    """Runs one pipeline, batch after batch."""

    def __init__(self, pipeline: OraclePipeline) -> None:
        self._pipeline = pipeline
        self._steps = pipeline.steps
        self._complete = Completeness(pipeline)
        self._memory = Memory(pipeline)
        self._clock = Watermark(pipeline.event_topics())
        self._watermark: float | None = None
        self._numbers = count()
        self._retained: list[list[Retained]] = [[] for _ in self._steps]
        self._driving: list[Driving] = []
        self._side_counters: Counter[str] = Counter()
        self._out: list[tuple[Row, Emitted]] = []
        self._expiring: list[tuple[int, Retained]] = []
        self._dead: list[DeadLetter] = []

    def run(self, batch: Batch) -> BatchResult:
        """Take one batch: what is due first, then its records one by one."""
        self._watermark = inf if batch.last else self._clock.value
        self._memory.start_batch(self._watermark)
        self._dead = []
        rows = self._expire_due()
        arrivals = arrive(self._pipeline, next(self._numbers), batch)
        self._dead.extend(arrivals.dead_letters)
        self._driving.extend(arrivals.driving)
        self._side_counters += arrivals.side_counters
        drives = {id(each.fact): each for each in arrivals.driving if each.fact is not None}
        for fact in arrivals.facts:
            rows.extend(self._take(fact, drives.get(id(fact))))
        self._clock.advance(arrivals.seen, batch.time)
        return BatchResult(
            rows=tuple(rows),
            dead_letters=tuple(self._dead),
            counters=self._totals(),
            watermark=self._watermark,
        )

    @property
    def is_due(self) -> bool:
        """Tell whether the next batch will expire or decide a waiting row first."""
        return any(
            expired(retained.row.driving.due, self._clock.value)
            for step in self._retained
            for retained in step
            if retained.row.driving.waiting
        )

    def _totals(self) -> dict[str, int]:
        classes = Counter(each.state for each in self._driving)
        side = self._side_counters + self._memory.counters
        return {
            "read": len(self._driving),
            "late": sum(each.late for each in self._driving),
            **{name: classes[name] for name in CLASSES},
            **{
                name: side[name]
                for name in ("null_key", "tombstones_ignored", "skipped_side", "side_dead_letters")
            },
        }

    def _expire_due(self) -> list[Emitted]:
        due: dict[Driving, list[tuple[int, Retained]]] = {}
        for number, step in enumerate(self._retained):
            for retained in step:
                if expired(retained.row.driving.due, self._watermark):
                    due.setdefault(retained.row.driving, []).append((number, retained))
            step[:] = [r for r in step if not expired(r.row.driving.due, self._watermark)]
        rows: list[Emitted] = []
        for driving in sorted(due, key=lambda each: each.expiry_order()):
            self._expire(driving, due[driving], fresh=False)
            rows.extend(self._flush())
        return rows

    def _take(self, fact: Fact, driving: Driving | None) -> list[Emitted]:
        """Take one record: update the sides, form rows, then let it drive."""
        touched = self._memory.update(fact)
        for number, before in enumerate([list(step) for step in self._retained]):
            for retained in before:
                self._meet(number, retained, fact, touched)
        if driving is not None:
            self._drive(driving, fact)
        # Only now: on_expiry looks at all rows of a driving record together.
        kept, self._expiring = self._expiring, []
        for each in dict.fromkeys(retained.row.driving for _, retained in kept):
            own = [pair for pair in kept if pair[1].row.driving is each]
            self._expire(each, own, fresh=each is driving)
        return self._flush()

    def _flush(self) -> list[Emitted]:
        rows = sorted(self._out, key=lambda pair: pair[0].order(self._pipeline))
        self._out = []
        return [emitted for _, emitted in rows]

    def _drive(self, driving: Driving, fact: Fact) -> None:
        driving.due = fact.ts + self._pipeline.ttl
        driving.late = expired(driving.due, self._watermark)
        values: Values = {self._pipeline.driving: fact.record.value}
        row = Row(driving=driving, fact=fact, values=values, members={})
        if not passes(self._pipeline.driving_where(), values):
            driving.filtered = True
        elif self._pipeline.emission == "final" or not self._complete.never(values):
            self._enter(0, row, fresh=True)
        elif self._gives_up(driving):
            self._enter(0, row, fresh=True, forced=True)

    def _enter(self, number: int, row: Row, *, fresh: bool, forced: bool = False) -> None:
        """Bring a row to a step: it leaves, waits or expires there."""
        step, driving = self._steps[number], row.driving
        key = tuple(column.of(row.values) for column in step.key)
        retained = Retained(row, key, self._memory.matches(step, key, row.fact))
        formed = [retained.wait(members) for members in retained.all_members()]
        if forced:
            self._send_all(number, retained, fresh)
            return
        if self._pipeline.emission != "final":
            self._leave_if_complete(number, retained, formed, fresh)
        if driving.late or (None in key and self._pipeline.emission != "final"):
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
        topic = self._pipeline.topics[fact.record.topic]
        emitted = [each for each in retained.combinations if each.last is not None]
        if sides and topic.dimension:
            self._dimension_came(number, retained, emitted)
        elif sides and pairs(retained.row.fact.ts, self._pipeline.ttl, fact.ts, topic.ttl):
            for alias in sides:
                retained.add(alias, fact)
            new = [members for members in retained.all_members() if fact in members]
            formed = [retained.wait(members) for members in new]
            if self._pipeline.emission != "final":
                self._leave_if_complete(number, retained, formed, fresh=False)

    def _dimension_came(self, number: int, retained: Retained, emitted: list[Combination]) -> None:
        if self._pipeline.emission == "final":
            return
        waiting = [each for each in retained.combinations if each.waits]
        self._leave_if_complete(number, retained, waiting, fresh=False)
        if not self._pipeline.reemit:
            return
        for combination in filter(retained.is_current, emitted):
            row = self._form(number, retained, combination, fresh=False)
            if self._complete.may_leave(self._steps[number], row.values):
                again = self._finish(row, unlike=combination.last)
                combination.last = again or combination.last

    def _leave_if_complete(
        self, number: int, retained: Retained, formed: list[Combination], fresh: bool
    ) -> None:
        for combination in formed:
            row = self._form(number, retained, combination, fresh)
            if self._complete.may_leave(self._steps[number], row.values):
                retained.leave(combination)
                combination.last = self._pass_on(number, row, fresh, forced=False)

    def _expire(self, driving: Driving, kept: list[tuple[int, Retained]], fresh: bool) -> None:
        """Settle what still waits of a driving record."""
        waiting = [(number, retained) for number, retained in kept if retained.waits]
        if not waiting:
            return
        sends = self._pipeline.emission == "final" or self._gives_up(driving)
        for number, retained in waiting:
            if sends:
                self._send_all(number, retained, fresh)
            else:
                retained.drop()

    def _gives_up(self, driving: Driving) -> bool:
        """Apply on_expiry to a driving record; tell whether its rows are still sent."""
        if self._pipeline.emission == "smart" and not (driving.emitted or driving.filtered):
            if self._pipeline.on_expiry == "emit":
                return True
            if self._pipeline.on_expiry == "dead_letter":
                self._dead.append(driving.letter("expiry"))
                driving.dead = True
                return False
        driving.expired = True
        return False

    def _send_all(self, number: int, retained: Retained, fresh: bool) -> None:
        """Send waiting rows on as they are, save those with an unmatched INNER side."""
        for combination in [each for each in retained.combinations if each.waits]:
            row = self._form(number, retained, combination, fresh)
            retained.leave(combination)
            if self._complete.inner_matched(self._steps[number], row.values):
                self._pass_on(number, row, fresh, forced=True)
            else:
                row.driving.expired = True

    def _pass_on(self, number: int, row: Row, fresh: bool, forced: bool) -> Emitted | None:
        if number + 1 == len(self._steps):
            return self._finish(row)
        self._enter(number + 1, row, fresh=fresh, forced=forced)
        return None

    def _form(self, number: int, retained: Retained, combination: Combination, fresh: bool) -> Row:
        """Form a row with the dimension values of this moment."""
        row, step = retained.row, self._steps[number]
        members = dict(zip(retained.matches, combination.members, strict=True))
        found = {alias: fact and fact.record.value for alias, fact in members.items()}
        latest = None if fresh else row.driving.due
        looked_up = self._memory.look_up(step, retained.key, row.fact.ts, latest)
        return Row(
            driving=row.driving,
            fact=row.fact,
            values={**row.values, **found, **looked_up},
            members={**row.members, **members},
        )

    def _finish(self, row: Row, unlike: Emitted | None = None) -> Emitted | None:
        """Give a finished row to the outputs, unless it equals the one before."""
        try:
            taken = finish(self._pipeline, row)
        except NotTaken as failure:
            return self._bad_row(row.driving, str(failure), unlike)
        if not taken:
            row.driving.filtered = True
        elif taken[0] != unlike:
            row.driving.emitted = True
            self._out.extend((row, emitted) for emitted in taken)
            return taken[0]
        return None

    def _bad_row(self, driving: Driving, phase: str, unlike: Emitted | None) -> None:
        """Charge a row to its driving record; what is only formed again leaves no trace."""
        on_error = self._pipeline.topics[self._pipeline.driving_topic].on_error
        if unlike is not None or on_error == "skip":
            return
        if on_error == "fail":
            raise Stopped(self._pipeline.driving_topic)
        self._dead.append(driving.letter(phase))
        driving.dead = True
