"""The log of a pipeline's runs where it writes to several clusters: each knows its own markers.

One of them is the log: it numbers runs, and keeps batches. The others know what was delivered to
them, and fence what earlier runs have left there.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Self

from kaflow_engine.connectors.kafka.run_log.control import ControlTopic
from kaflow_engine.connectors.run_log import Check, RunLog, RunStart, no_check


class ClusterLogs:
    """A `RunLog` with markers in several clusters.

    Args:
        home: The log itself.
        others: The pipeline's own topics in other clusters, by cluster.
        begun: The clusters for which the open batch may have rows.
    """

    def __init__(
        self, home: RunLog, others: Mapping[str, ControlTopic], begun: Collection[str] = ()
    ) -> None:
        self._home, self._others, self._begun = home, others, begun

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def ensure(self) -> None:
        """Make ready what is missing in any cluster."""
        for log in self._all:
            log.ensure()

    def broker_time(self) -> int | None:
        """Return the clock of the log."""
        return self._home.broker_time()

    def start_run(
        self,
        state_id: str,
        generation: int,
        check: Check = no_check,
        after: int = 0,
        doubtful: int | None = None,
    ) -> RunStart:
        """Begin the run in the log, and then in the other clusters.

        A start that any cluster refuses has written to none of them. One that fails later has
        fenced the run before it, as one that fails in the log.
        """
        known = {name: log.look(state_id, generation) for name, log in self._others.items()}
        home = self._home.start_run(
            state_id,
            generation,
            lambda start: check(_with(start, known)),
            after,
            doubtful,
        )
        for name, log in self._others.items():

            def check_all(start: RunStart, name: str = name) -> None:
                check(_with(home, {**known, name: start}))

            known[name] = log.start_run(
                state_id,
                generation,
                check_all,
                home.epoch - 1,
                doubtful if name in self._begun else None,
            )
        return _with(home, known)

    def claim(self, batch: int, mark: str) -> None:
        """Note in the log that a batch is delivered."""
        self._home.claim(batch, mark)

    def require_newest(self) -> None:
        """Go on only while no newer run has started."""
        self._home.require_newest()

    def put_batch(self, batch: int, record: Mapping[str, object]) -> None:
        """Keep a batch record in the log."""
        self._home.put_batch(batch, record)

    def drop_batches(self, batches: Collection[int]) -> None:
        """Remove batch records from the log."""
        self._home.drop_batches(batches)

    def states(self) -> set[tuple[str, int]]:
        """Return the states of which any cluster notes deliveries."""
        return {state for log in self._all for state in log.states()}

    def forget(self, states: Collection[tuple[str, int]]) -> int:
        """Remove what any cluster notes of dropped states."""
        return sum(log.forget(states) for log in self._all)

    def close(self) -> None:
        """Let go of connections."""
        for log in self._all:
            log.close()

    @property
    def _all(self) -> Iterable[RunLog]:
        return (self._home, *self._others.values())


def _with(home: RunStart, others: Mapping[str, RunStart]) -> RunStart:
    held = home.holdings.union(*(start.holdings for start in others.values()))
    return replace(home, holdings=held, others=dict(others))
