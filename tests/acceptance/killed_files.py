"""A pipeline file that runs without being killed, and is killed at each of some places.

The runs are without Spark, as those of `test_crash_points.py`. Three of the kills are tried, all by
`KAFLOW_KILLS=all`.
"""
# pyright: basic

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.acceptance.crash_here import Forks
from tests.acceptance.crash_kinds import ONCE_PER_RUN, places
from tests.acceptance.crash_orders import End, Order
from tests.acceptance.kills import share

Kill = tuple[str, int]
"""A crash point, and the batch."""

KILLS: list[Kill] = places(2, 3, 4)[:20]
TRIED = share(KILLS, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Killed:
    """A run that was killed, and the run after it over the same state."""

    name: str
    first: End
    last: End

    def check(self) -> None:
        """Check that both have ended as they should."""
        assert (self.first.how, self.first.said) == ("killed", ""), self.first.said
        assert (self.last.how, self.last.said) == ("ended", ""), self.last.said


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRuns:
    """Runs of files that differ in their names."""

    forks: Forks
    order: Order
    folder: Path
    write: Callable[[Path, Order], Path]
    """Writes the file of an order into a folder."""

    def order_of(self, name: str) -> Order:
        """Return a run, whose file is written."""
        named = replace(
            self.order, name=name, path=str(self.folder), most=120, snapshots="1ms", file=""
        )
        return replace(named, file=str(self.write(self.folder, named)))

    def in_peace(self, name: str) -> str:
        """Run it without a kill; return its name."""
        calm = self.order_of(name)
        (end,) = self.forks.run([calm])
        assert (end.how, end.said) == ("ended", ""), end.said
        return calm.name

    def killed(self, name: str, kills: Sequence[Kill] = tuple(TRIED)) -> dict[Kill, Killed]:
        """Run it with each of some kills, and again."""
        orders = [
            replace(
                self.order_of(f"{name}_{point}_{batch}"),
                crash_at=f"{point}:{'*' if point in ONCE_PER_RUN else batch}",
            )
            for point, batch in kills
        ]
        first = self.forks.run(orders)
        last = self.forks.run([replace(each, crash_at="") for each in orders])
        return {
            kill: Killed(name=order.name, first=one, last=other)
            for kill, order, one, other in zip(kills, orders, first, last, strict=True)
        }
