# pyright: basic
"""The kinds of output that crashes are tried with: what runs of each differ in, and promise."""

import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from kaflow_engine.runtime.tasks.crash import CrashPoint
from tests.acceptance.crash_here import Forks
from tests.acceptance.crash_orders import End, Order
from tests.acceptance.crash_pipeline import START, Delivered, create_outputs, delivered, log_of
from tests.acceptance.crash_sinks import sink_rows

FIRST_HOUR = START - START % 3_600_000
TWO_HOURS = (FIRST_HOUR, FIRST_HOUR + 2 * 3_600_000)
OF_TRANSACTIONS = (
    *("before_slot", "slot_claimed", "before_transaction", "transaction_begun"),
    *("marker_produced", "before_commit"),
)
PIECE = 3_000
"""Bytes of a transaction: some rows of a batch, so that it takes several."""
OF_PIECES = ("piece_committed",)
OF_TABLES = ("files_written", "before_table", "table_taken")
OF_REPLACING = ("before_replace", "replaced")
OF_CLUSTERS = ("next_cluster",)
"""No kind here writes to several; `test_clusters.py` does."""
OF_STREAMS = ("before_group", "group_committed")
NEITHER = (*OF_PIECES, *OF_REPLACING)
ONCE_PER_RUN = ("before_slot", "slot_claimed", *OF_REPLACING)
"""They are passed at the first delivery of a run, or at its end; the others in batch 2."""


def places(*batches: int) -> list[tuple[str, int]]:
    """Return where a stream into topics may be killed: points that it passes, and batches."""
    others = (*OF_TABLES, *OF_REPLACING, *OF_PIECES, *OF_CLUSTERS)
    return [
        (point, batch)
        for batch in batches
        for point in get_args(CrashPoint)
        if point not in others and not (point in ONCE_PER_RUN and batch != batches[0])
    ]


Case = tuple[str, str]
"""A kind, and a crash point."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of output."""

    title: str
    """As in the table of `engine/docs/production.md`."""
    delivery: str = "exactly_once"
    table: bool = False
    several: bool = False
    """Two topics, and two tables where `table` is true."""
    pipeline: str = "crash"
    """As `Order` says it."""
    on_error: str | None = None
    """As `Order` says it."""
    wanted: tuple[int, int] | None = None
    """The range of a backfill; None: a stream."""
    piece: int | None = None
    """As `Order` says it."""
    sink: str = ""
    """As `Order` says it."""
    without: tuple[str, ...]
    """Crash points that it does not pass."""

    @property
    def points(self) -> tuple[str, ...]:
        """All crash points that it passes."""
        without = (*self.without, *OF_CLUSTERS)
        return tuple(point for point in get_args(CrashPoint) if point not in without)


KINDS = {
    "topic": Kind(title="topic", piece=PIECE, without=(*OF_TABLES, *OF_REPLACING)),
    "often": Kind(
        title="topic, `at_least_once`",
        delivery="at_least_once",
        without=(*OF_TRANSACTIONS, *OF_PIECES, *OF_TABLES, *OF_REPLACING),
    ),
    "table": Kind(
        title="table",
        table=True,
        without=(*OF_TRANSACTIONS, *OF_PIECES, "rows_produced", "committed", *OF_REPLACING),
    ),
    "backfill": Kind(
        title="backfill into a topic",
        wanted=TWO_HOURS,
        piece=PIECE,
        without=(*OF_STREAMS, *OF_TABLES, *OF_REPLACING),
    ),
    "refill": Kind(
        title="backfill into a table",
        table=True,
        on_error="dead_letter",
        wanted=TWO_HOURS,
        without=(*OF_STREAMS, *OF_PIECES),
    ),
    "several": Kind(
        title="several outputs",
        table=True,
        several=True,
        on_error="dead_letter",
        piece=PIECE,
        without=OF_REPLACING,
    ),
    "fill-several": Kind(
        title="backfill into several outputs",
        table=True,
        several=True,
        on_error="dead_letter",
        wanted=TWO_HOURS,
        piece=PIECE,
        without=OF_STREAMS,
    ),
}
"""Of several tables the first one passes a point first: behind it, the second lacks the batch."""

TRIED = {
    **KINDS,
    "relations": Kind(
        title="topics of windows, and of tables",
        several=True,
        pipeline="relations",
        without=(*OF_TABLES, *NEITHER),
    ),
    "meetings": Kind(
        title="topics of windows that look up, and meet events",
        several=True,
        pipeline="meetings",
        without=(*OF_TABLES, *NEITHER),
    ),
    "clickhouse": Kind(
        title="tables of ClickHouse",
        pipeline="sinks",
        sink="clickhouse",
        without=(*OF_TABLES, *OF_REPLACING),
    ),
    "iceberg": Kind(
        title="Iceberg tables",
        pipeline="sinks",
        sink="iceberg",
        without=("files_written", *OF_PIECES, *OF_REPLACING),
    ),
    "bucket": Kind(title="files in a bucket", pipeline="sinks", sink="files", without=NEITHER),
}
"""Those, pipelines whose rows replace each other, or leave when windows close and are joined then,
and one that writes rows and changes into a system that a file names."""


class Outputs:
    """Makes ready what runs of each kind write to, and reads it."""

    def __init__(
        self, broker, forks: Forks, order: Order, systems: Mapping[str, Callable[[], Any]]
    ) -> None:
        self.broker, self._forks, self._order = broker, forks, order
        self._systems = systems
        self._warehouse = Path(order.path) / "warehouse"
        self._streamed: set[str] = set()
        self._peace: dict[str, Delivered] = {}
        self._second: dict[str, Counter[bytes]] = {}

    def orders(self, way: str, cases: Iterable[Case], **more: Any) -> dict[Case, Order]:
        """Return an order for each kind and crash point, with outputs of its own."""
        found = {}
        for kind, point in cases:
            snapshots = "1ms" if "snapshot" in point else "1h"
            batch = "*" if point in ONCE_PER_RUN else "2"
            order = self.order(kind, f"{way}-{kind}-{point}", snapshots=snapshots, **more)
            found[kind, point] = replace(order, crash_at=f"{point}:{batch}")
        return found

    def order(self, kind: str, name: str, **more: Any) -> Order:
        """Return a run of a kind whose outputs are there; a table that is filled again has rows."""
        about = TRIED[kind]
        create_outputs(self.broker.settings, name, about.several)
        if about.table and about.wanted:
            self._copy_tables_of_a_stream("several" if about.several else "table", name)
        found = replace(
            self._order,
            name=name,
            delivery=about.delivery,
            on_error=about.on_error,
            warehouse=str(self._warehouse) if about.table else "",
            several=4 if about.several else 0,
            pipeline=about.pipeline,
            sink=about.sink,
            connection=self._systems[about.sink]() if about.sink else {},
            wanted=about.wanted,
            piece=about.piece,
            force=about.wanted is not None,  # for there is no stream
        )
        return replace(found, **more)

    def read(self, order: Order) -> Delivered:
        """Return what a run has done."""
        log = log_of(Path(order.path), order.name)
        about = order.warehouse, bool(order.several)
        found = delivered(self.broker.settings, order.name, log, *about)
        if order.sink:
            found = replace(found, rows=sink_rows(order.sink, order.connection, order.name))
        return found

    def in_peace(self, kind: str) -> Delivered:
        """Return what a run does that no one disturbs."""
        if kind not in self._peace:
            order = self.order(kind, f"peace-{kind}")
            self._run(order)
            self._peace[kind] = self.read(order)
        return self._peace[kind]

    def of_batch_2(self, kind: str) -> Counter[bytes]:
        """Return the rows and dead letters of the batch in which runs are disturbed."""
        if kind not in self._second:
            order = self.order(kind, f"second-{kind}")
            found = []
            for batch in (1, 2):
                (end,) = self._forks.run([replace(order, crash_at=f"commit_logged:{batch}")])
                assert (end.how, end.said) == ("killed", "")
                found.append(values(self.read(order)))
            assert found[1] > found[0]
            self._second[kind] = found[1] - found[0]
        return self._second[kind]

    def _copy_tables_of_a_stream(self, kind: str, name: str) -> None:
        streamed = f"streamed-{kind}"
        if kind not in self._streamed:
            self._run(self.order(kind, streamed))
            self._streamed.add(kind)
        for folder in self._warehouse.glob(f"{streamed}*"):
            shutil.copytree(folder, self._warehouse / folder.name.replace(streamed, name))

    def _run(self, order: Order) -> None:
        (end,) = self._forks.run([order])
        assert (end.how, end.said) == ("ended", "")


def values(found: Delivered) -> Counter[bytes | None]:
    """Count each row and each dead letter."""
    return Counter([*found.letters, *(row for rows in found.rows.values() for row in rows)])


def keeps_its_promise(outputs: Outputs, kind: str, order: Order, tries: int) -> None:
    """Assert that nothing is lost, and nothing repeated but what a kind says.

    Args:
        outputs: Has what the run has done.
        kind: At least once, each further try of the open batch may repeat its rows.
        order: The run.
        tries: How many of them there were.
    """
    found, peace = outputs.read(order), outputs.in_peace(kind)
    if TRIED[kind].delivery == "exactly_once":
        assert found == peace
        return
    assert found.counters == peace.counters
    assert not values(peace) - values(found)
    most = Counter({value: tries * n for value, n in outputs.of_batch_2(kind).items()})
    assert not values(found) - values(peace) - most


def run_all(forks: Forks, orders: Mapping[Case, Order]) -> dict[Case, End]:
    """Run each until it has ended, or has stopped."""
    return dict(zip(orders, forks.run(list(orders.values())), strict=True))


def wake_all(forks: Forks, ends: Mapping[Case, End]) -> dict[Case, End]:
    """Let those go on that have stopped."""
    return dict(zip(ends, forks.wake(list(ends.values())), strict=True))


def paused(orders: Mapping[Case, Order]) -> dict[Case, Order]:
    """Return the runs that stop once at their points; another run does not find the file."""
    for each in orders.values():
        _file(each).write_text(f"{each.crash_at}:pause")
    return {case: replace(each, crash_at=f"@{_file(each)}") for case, each in orders.items()}


def calm(orders: Mapping[Case, Order], path: Path | None = None) -> dict[Case, Order]:
    """Return the runs without what disturbs them, over another directory if one is given."""
    return {
        case: replace(each, crash_at="", path=str(path or each.path))
        for case, each in orders.items()
    }


def _file(order: Order) -> Path:
    return Path(order.path) / f"{order.name}.crash"
