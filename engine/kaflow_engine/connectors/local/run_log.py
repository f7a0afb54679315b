"""The log of a pipeline's runs in a database file beside its state."""

import json
import sqlite3
from collections.abc import Collection, Generator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any, Self

from kaflow_engine.connectors.holding import Holding
from kaflow_engine.connectors.run_log import Check, RunStart, no_check
from kaflow_engine.errors import SinkAway, StateError, TakenOver
from kaflow_engine.state.storage.private import make_private

RUNS = ".runs"
"""The folder of these files, beside the states, so that a state which goes leaves its log."""

_TABLES = """
CREATE TABLE IF NOT EXISTS run (epoch INTEGER NOT NULL, process TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS claim (
    state TEXT, generation INTEGER, batch INTEGER NOT NULL, mark TEXT NOT NULL,
    PRIMARY KEY (state, generation)
);
CREATE TABLE IF NOT EXISTS batch (
    state TEXT, generation INTEGER, batch INTEGER, record TEXT NOT NULL,
    PRIMARY KEY (state, generation, batch)
);
"""
_PATIENCE_S = 30.0


def run_log_file(root: Path, pipeline_id: str) -> Path:
    """Return where the log of a pipeline's runs is, below the folder of all states."""
    return root / RUNS / f"{pipeline_id}.sqlite"


class LocalRunLog:
    """A `RunLog` in a file, for pipelines that neither read nor write topics.

    Each call is one transaction of SQLite, which first looks for a newer run: nothing is written
    after that one has taken its epoch. What tasks of an older run still write is up to the ledgers
    of the sinks.
    """

    def __init__(self, root: Path, pipeline_id: str) -> None:
        self.pipeline_id = pipeline_id
        self.path = run_log_file(root, pipeline_id)
        self._process = token_hex(8)
        self._state: tuple[str, int] = ("", 0)
        self._epoch = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def ensure(self) -> None:
        """Create the file unless it exists.

        Raises:
            SinkAway: It cannot be written.
            StateError: It is no such log.
        """
        try:
            make_private(self.path.parent)
        except OSError as error:
            raise self._away(error.strerror or str(error)) from error
        with self._connected() as database:
            database.executescript(_TABLES)

    def broker_time(self) -> int | None:
        """Return None: no clock but that of this machine is asked."""
        return None

    def start_run(
        self,
        state_id: str,
        generation: int,
        check: Check = no_check,
        after: int = 0,
        doubtful: int | None = None,
    ) -> RunStart:
        """Take the next epoch (> `after`), and read what was claimed.

        Args:
            state_id: The state the run works on.
            generation: Its generation.
            check: Called before and after the epoch is taken.
            after: The greatest epoch found elsewhere, should the file have been lost.
            doubtful: Makes no difference: the sinks know what they hold.

        Raises:
            SinkAway: The file cannot be written.
            TakenOver: Another run has replaced the one that this process had before.
            StateError: What `check` raises.
        """
        self.ensure()
        with self._writing() as database:
            newest, process = self._newest(database)
            if self._epoch and process != self._process:
                raise self._taken_over(newest)
            start = self._start(database, state_id, generation, newest)
        check(start)
        with self._writing() as database:
            epoch = max(self._newest(database)[0], after) + 1
            database.execute("DELETE FROM run")
            database.execute("INSERT INTO run VALUES (?, ?)", (epoch, self._process))
            self._state, self._epoch = (state_id, generation), epoch
            start = self._start(database, state_id, generation, epoch)
        check(start)
        return start

    def claim(self, batch: int, mark: str) -> None:
        """Note that a batch is delivered; of a batch that is run again the newest claim stays.

        Raises:
            TakenOver: A newer run has started.
            SinkAway: The file cannot be written.
        """
        with self._owned() as database:
            database.execute(
                "INSERT INTO claim AS c VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE "
                "SET batch = excluded.batch, mark = excluded.mark WHERE excluded.batch >= c.batch",
                (*self._state, batch, mark),
            )

    def require_newest(self) -> None:
        """Go on only while no newer run has started.

        Raises:
            TakenOver: One has.
            SinkAway: The file cannot be read.
        """
        with self._owned():
            pass

    def put_batch(self, batch: int, record: Mapping[str, object]) -> None:
        """Keep a batch record.

        Raises:
            TakenOver, SinkAway: As in `claim`.
        """
        with self._owned() as database:
            database.execute(
                "INSERT OR REPLACE INTO batch VALUES (?, ?, ?, ?)",
                (*self._state, batch, json.dumps(record)),
            )

    def drop_batches(self, batches: Collection[int]) -> None:
        """Remove batch records that a checkpoint covers.

        Raises:
            TakenOver, SinkAway: As in `claim`.
        """
        with self._owned() as database:
            database.executemany(
                "DELETE FROM batch WHERE state = ? AND generation = ? AND batch = ?",
                [(*self._state, batch) for batch in batches],
            )

    def states(self) -> set[tuple[str, int]]:
        """Return the (state id, generation) pairs of which it notes something."""
        if not self.path.exists():
            return set()
        with self._writing() as database:
            rows = database.execute(
                "SELECT state, generation FROM claim UNION SELECT state, generation FROM batch"
            )
            return {(state, generation) for state, generation in rows}

    def forget(self, states: Collection[tuple[str, int]]) -> int:
        """Remove what is noted of dropped states; returns how many notes there were.

        Raises:
            TakenOver, SinkAway: As in `claim`.
        """
        with self._owned() as database:
            return sum(
                database.execute(
                    f"DELETE FROM {table} WHERE state = ? AND generation = ?", state
                ).rowcount
                for table in ("claim", "batch")
                for state in states
            )

    def close(self) -> None:
        """Do nothing: each call has a connection of its own."""

    def _start(
        self, database: sqlite3.Connection, state_id: str, generation: int, epoch: int
    ) -> RunStart:
        claims = database.execute("SELECT state, generation, batch, mark FROM claim").fetchall()
        kept = database.execute(
            "SELECT batch, record FROM batch WHERE state = ? AND generation = ?",
            (state_id, generation),
        )
        return RunStart(
            epoch=epoch,
            epoch_offset=epoch,
            delivered={},
            rows={},
            digests={},
            batches={batch: json.loads(record) for batch, record in kept},
            holdings=frozenset(
                Holding(state=state, generation=of, batch=batch, mark=mark)
                for state, of, batch, mark in claims
            ),
        )

    def _newest(self, database: sqlite3.Connection) -> tuple[int, str]:
        found: Any = database.execute("SELECT epoch, process FROM run").fetchone()
        return found or (0, "")

    @contextmanager
    def _owned(self) -> Generator[sqlite3.Connection]:
        """Write as the newest run, in one transaction."""
        with self._writing() as database:
            epoch, _ = self._newest(database)
            if not self._epoch:
                raise StateError(
                    f"no run of pipeline '{self.pipeline_id}' was started",
                    hint="call start_run first",
                )
            if epoch != self._epoch:
                raise self._taken_over(epoch)
            yield database

    @contextmanager
    def _writing(self) -> Generator[sqlite3.Connection]:
        with self._connected() as database:
            database.execute("BEGIN IMMEDIATE")
            try:
                yield database
            except BaseException:
                database.rollback()
                raise
            database.commit()

    @contextmanager
    def _connected(self) -> Generator[sqlite3.Connection]:
        try:
            opened = sqlite3.connect(self.path, timeout=_PATIENCE_S, isolation_level=None)
            with closing(opened) as database:
                database.execute("PRAGMA synchronous = FULL")
                yield database
        except sqlite3.OperationalError as error:
            raise self._away(str(error)) from error
        except sqlite3.DatabaseError as error:
            raise StateError(
                f"'{self.path}' is no log of runs: {error}",
                hint="it is the pipeline's own; move it away while the pipeline is stopped",
            ) from error

    def _away(self, why: str) -> SinkAway:
        return SinkAway(
            f"the log of runs '{self.path}' cannot be written: {why}",
            hint="set state.rocksdb.path to a folder that this user may write, on a disk with room",
        )

    def _taken_over(self, epoch: int) -> TakenOver:
        return TakenOver(
            f"another run of pipeline '{self.pipeline_id}' has taken over: run {epoch}",
            hint="a pipeline has one run at a time; stop this one",
        )
