"""When a stream runs a batch without records, and when it has reached its goal."""

from kaflow_engine.flow.chains.clocks import clocks
from kaflow_engine.operators.watermark import END, next_change
from kaflow_engine.runtime.batch.run import Run
from kaflow_engine.runtime.batch.stop import Ending
from kaflow_engine.runtime.clock.ticks import (
    QUIET_MS,
    TICK_MS,
    Clockwork,
    clocks_at,
    due_chains,
    wants_tick,
)
from kaflow_engine.runtime.source.offsets import reaches
from kaflow_engine.state.log.batch_log import Offsets


def end_inputs(run: Run) -> None:
    """Run what is due when nothing comes behind what was read, for good: at the end of all time."""
    if run.standing.watermark.least != END:
        run.tick(bounded_end=True)
    while due_chains(
        clocks_at(run.standing.watermark.values, run.standing.batch_time), run.standing.next_due
    ):
        run.tick(bounded_end=True)


class Ticker:
    """Runs what is due while no records come.

    Args:
        run: Whose batches they are.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._last_end = 0
        self._last_tick = 0
        self._settled = False  # what was due at the goal has been done

    def batch_ended(self) -> None:
        """Take note that a batch of records has ended."""
        self._last_end = self._run.runner.clock()

    def ending(self, goal: Offsets | None) -> Ending | None:
        """Return why no further batch may begin; None: one may.

        Args:
            goal: Where to end; None: nowhere.
        """
        if ending := self._run.ending:
            return ending
        standing = self._run.standing
        if goal is not None and reaches(standing.offsets, goal):
            at = clocks_at(standing.watermark.values, standing.batch_time)
            due = due_chains(at, standing.next_due)
            return None if due and not self._settled else "caught up"
        return None

    def tick(self, goal: Offsets | None) -> bool:
        """Run an empty batch if something is due; return whether it did.

        Args:
            goal: Where to end; once it is reached, what is due is done at once.
        """
        run = self._run
        if not run.standing.next_due:
            return False
        caught_up = goal is not None and reaches(run.standing.offsets, goal)
        if not caught_up and not self._wants_tick():
            return False
        run.tick()
        self._last_end = self._last_tick = run.runner.clock()
        self._settled = caught_up
        return True

    def _wants_tick(self) -> bool:
        run, standing = self._run, self._run.standing
        now = run.runner.clock()
        if now - self._last_end < QUIET_MS or now - self._last_tick < TICK_MS:
            return False
        everywhere = {(t, p): True for t, ps in standing.offsets.items() for p in ps}
        time = max(now, standing.batch_time)
        after = next_change(standing.watermark, clocks(run.plan), everywhere, time)
        return wants_tick(
            Clockwork(
                now=now,
                last_batch_end=self._last_end,
                last_tick_end=self._last_tick,
                next_due=standing.next_due,
                watermarks=clocks_at(standing.watermark.values, time),
                watermarks_after=after.values,
            )
        )
