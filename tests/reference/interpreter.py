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

Several chains
- Queries that read the same topics and join them alike share a chain. Each chain has its own
  memory, waiting rows, watermark (over its own event topics) and account; counters are sums.
- The rules above that say "all outputs" mean the queries of one chain: its outputs, and the
  branches of their unions. What fails in one chain is a dead letter of that chain only; what
  cannot be decoded is one for all, and counted by each chain that it drives.
- What a record makes leaves a union branch by branch, and in a branch as said above.

Groups
- What leaves the joins of an output with GROUP BY goes into its groups, rows of a record together:
  under `each` they make one change; of a record whose time is up each row makes one. Under a batch,
  groups that close send their change first, the others at the end.
- A row of phase 0 is never late. A delete has the greatest `ts` of the rows that it was made of.
- A record that changes several windows first sends deletes, by start, then what is there.
"""

from collections import Counter
from collections.abc import Iterable
from itertools import count, groupby
from operator import itemgetter

from tests.reference.arrival import arrive
from tests.reference.chain import OracleChain
from tests.reference.groups import Groups
from tests.reference.looked_up import LookedUp
from tests.reference.one_chain import CLASSES, OneChain, Out
from tests.reference.pipeline import OraclePipeline
from tests.reference.records import Batch, BatchResult, DeadLetter, Emitted

COUNTED = (
    *("read", "late", "used", *CLASSES),
    *("null_key", "tombstones_ignored", "skipped_side", "side_dead_letters", "late_rows"),
)


class Oracle:
    """Runs one pipeline, batch after batch."""

    def __init__(self, pipeline: OraclePipeline) -> None:
        self._pipeline = pipeline
        shapes = OracleChain.all_of(pipeline)
        self._chains = [OneChain(shape) for shape in shapes]
        self._tables = LookedUp(pipeline)
        self._numbers = count()
        self._side_counters: Counter[str] = Counter()
        self._groups: dict[str, tuple[OneChain, Groups]] = {}
        for shape, chain in zip(shapes, self._chains, strict=True):
            for write in shape.writes:
                if write.groups:
                    self._groups[write.topic] = chain, Groups(write, shape.name)

    def run(self, batch: Batch) -> BatchResult:
        """Take one batch: what is due first, then its records one by one."""
        for chain in self._chains:
            chain.start_batch(batch.last)
        watermarks = tuple(chain.watermark for chain in self._chains)
        for chain, groups in self._groups.values():
            groups.start_batch(chain.watermark)
        rows = self._expire_due()
        for _, groups in self._groups.values():
            rows.extend(groups.close())
        arrivals = arrive(self._pipeline, next(self._numbers), batch)
        self._side_counters += arrivals.side_counters
        for chain in self._chains:
            chain.receive(arrivals)
        for record, what in arrivals.refused:
            self._tables.refuse(record, what)
        for fact in arrivals.facts:
            changes = self._tables.take(fact)
            rows.extend(
                self._leave(out for chain in self._chains for out in chain.take(fact, changes))
            )
        dead = [
            DeadLetter(record.topic, record.partition, record.offset, phase)
            for record, phase in arrivals.refused
            if phase != "skipped"
        ]
        for chain in self._chains:
            dead.extend(chain.end_batch(arrivals.seen, batch.time))
        for _, groups in self._groups.values():
            changes, letters = groups.end_batch()
            rows.extend(changes)
            dead.extend(letters)
        return BatchResult(
            rows=tuple(rows),
            dead_letters=tuple(dead),
            counters=self._totals(),
            watermarks=watermarks,
            closed=frozenset(
                place for _, groups in self._groups.values() for place in groups.take_closed()
            ),
        )

    @property
    def is_due(self) -> bool:
        """Tell whether the next batch will expire or decide a waiting row first."""
        closes = any(groups.is_due(c.next_watermark) for c, groups in self._groups.values())
        return closes or any(chain.is_due for chain in self._chains)

    def _totals(self) -> dict[str, int]:
        found = sum((chain.counters for chain in self._chains), self._side_counters)
        found += self._tables.counters
        found["late_rows"] = sum(groups.late for _, groups in self._groups.values())
        return {name: found[name] for name in COUNTED}

    def _expire_due(self) -> list[Emitted]:
        due = [
            (driving.expiry_order(), chain, driving, kept)
            for chain in self._chains
            for driving, kept in chain.take_due().items()
        ]
        rows: list[Emitted] = []
        for _, some in groupby(sorted(due, key=itemgetter(0)), key=itemgetter(0)):
            found = [chain.expire(driving, kept) for _, chain, driving, kept in some]
            rows.extend(self._leave((out for each in found for out in each), early=True))
        return rows

    def _leave(self, found: Iterable[Out], early: bool = False) -> list[Emitted]:
        """Return what the rows of one record send: they themselves, or the groups they go into.

        Each row that is sent `early`, in phase 0, makes its own change of a group.
        """
        rows: list[Emitted] = []
        ordered = sorted(found, key=_place)
        for _, some in groupby(ordered, key=_place if early else lambda _: None):
            for out in some:
                if out.emitted.topic in self._groups:
                    _, groups = self._groups[out.emitted.topic]
                    groups.take(out.emitted, out.record, early=early)
                else:
                    rows.append(out.emitted)
            rows += [row for _, each in self._groups.values() for row in each.end_record()]
        return rows


def _place(out: Out) -> tuple[int, str, tuple[object, ...]]:
    return out.branch, out.emitted.topic, out.order  # orders of other chains do not compare
