"""The live stream of a pipeline whose tasks read its sources themselves: it asks for their ends."""

import time
from collections.abc import Mapping
from dataclasses import replace

from kaflow_engine.flow.graph import gathered_for
from kaflow_engine.runtime.batch.run import Run
from kaflow_engine.runtime.batch.stop import Ending
from kaflow_engine.runtime.drive.ticker import Ticker, end_inputs
from kaflow_engine.runtime.source.offsets import merged, unread, with_added_partitions
from kaflow_engine.state.log.batch_log import Offsets

_SOON_S, _LATER_S = 0.01, 0.05
"""How long to wait before the ends of topics are asked for again: at first, and at most, as long as
nothing new is there."""
_OTHERS_S = 0.5
"""How long before those of other sources are."""
_COUNT_EVERY_S = 30
"""How often to look whether topics have more partitions."""


class PolledStream:
    """Batches of exact ranges, one after the other, whatever the sources are.

    Args:
        run: Runs them.
        counts: How many partitions each topic and source has that the pipeline reads.
        interval: How long records gather before the next batch, in milliseconds.
    """

    def __init__(self, run: Run, counts: Mapping[str, int], interval: int) -> None:
        self._run, self._counts = run, counts
        self._counted = time.monotonic()
        self._gather_s = max(interval, gathered_for(run.plan)) / 1000
        self._ticker = Ticker(run)
        self._idle_s = 0.0
        self._asked: Offsets | None = None
        self._ending: frozenset[str] = frozenset()
        """The sources that had an end when it was last asked where to end."""

    def follow(self, asked: Offsets | None, finite: frozenset[str]) -> Ending:
        """Run batches until a limit is reached, or all inputs have ended for good.

        Args:
            asked: Where to end, of what may grow; None: nowhere.
            finite: The sources that had an end when that was asked.

        Raises:
            KaflowError: A batch failed; what was not committed is still open.
        """
        run = self._run
        self._asked, self._ending = asked, finite
        gather_s = self._gather_s if asked is None else 0.0  # else what comes is not read
        while True:
            run.watch.look()
            goal = self._goal()
            if ending := self._ticker.ending(goal):
                break
            ends = self._ends() if goal is None else goal
            if unread(run.standing.offsets, ends):
                if ending := run.read_to(ends):
                    return ending
                self._ticker.batch_ended()
                self._idle_s = 0.0
                if run.keeps_up:
                    run.limits.stop.wait(gather_s)
            elif not self._ticker.tick(goal):
                run.limits.stop.wait(self._longer())
        if ending == "caught up" and run.inputs.finite(self._counts) == self._counts.keys():
            end_inputs(run)
        return ending

    def _longer(self) -> float:
        """Return how long to wait where nothing new is there, longer from time to time."""
        if self._run.inputs.named:
            return _OTHERS_S
        self._idle_s = min(max(2 * self._idle_s, _SOON_S), _LATER_S)
        return self._idle_s

    def _goal(self) -> Offsets | None:
        """Return where to end; None: nowhere, or that is not known yet."""
        inputs = self._run.inputs
        finite = inputs.finite(self._counts)
        if self._asked is not None and (grown := self._ending - finite):
            # what followed its phases is there now
            self._ending = finite
            self._asked = merged(self._asked, self._end_of(grown))
        names = frozenset(self._counts) if self._asked is None else finite
        if not inputs.ended(names):
            return None
        return merged(self._asked or {}, self._end_of(names))

    def _end_of(self, names: frozenset[str]) -> Offsets:
        return self._run.ends.ask({name: range(self._counts[name]) for name in names})

    def _ends(self) -> Offsets:
        """Return where everything ends now, or up to where it is wanted; partitions that were
        added begin at 0."""
        run, now = self._run, time.monotonic()
        if now - self._counted > _COUNT_EVERY_S:
            self._counted, counts = now, run.inputs.partitions(run.plan)
            if counts != self._counts:
                self._counts = counts
                grown = with_added_partitions(run.standing.offsets, counts)
                run.go_on(replace(run.standing, offsets=grown))
        if self._asked is None:
            return self._end_of(frozenset(self._counts))
        ends = self._end_of(run.inputs.finite(self._counts))
        left = run.inputs.finite(ends)  # a topic may have begun where phases were
        return {n: ends[n] if n in left else self._asked[n] for n in self._counts}
