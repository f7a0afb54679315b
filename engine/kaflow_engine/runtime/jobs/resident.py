"""A task that stays: a batch that follows soon after another needs no job of its own.

To begin a job takes Spark as long as a small batch takes its task. The driver gives a task that
stays what to do over a socket, and gets the answer over it, as often as something comes in time.
"""

import gc
import pickle
import shutil
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from tempfile import gettempdir, mkdtemp
from threading import Thread
from typing import Any, cast

from pyspark import SparkContext
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql import SparkSession

from kaflow_engine.runtime.jobs.jobs import numbers
from kaflow_engine.runtime.spark.master import cores, is_local
from kaflow_engine.runtime.tasks.level_task import Given

Asked = Callable[[], Iterable[Given]]
"""What a task does."""

_pickled = cast(Callable[[Asked], bytes], cast(Any, CloudPickleSerializer()).dumps)
_IDLE_S = 0.2
"""For how long a task waits for what comes next, which costs others its slot."""
_MOST_S = 60.0
"""After how long another takes its place, so that Spark sees it end and begin."""
_LOOK_S = 0.05
_LEAVES_S = 2.0
_LONGEST = 80
"""Letters of the folder for temporary files, so that a socket in it has a name."""


def resident_task(spark: SparkSession, master: str, pipelines: int) -> "ResidentTask | None":
    """Return what runs small batches of a pipeline in a task that stays; None: each is a job.

    Tasks stay on this machine alone, and where they leave a slot to each other pipeline.

    Args:
        spark: Runs them.
        master: Of that session.
        pipelines: How many there are in this process.
    """
    if not is_local(master) or cores(master) < pipelines or len(gettempdir()) > _LONGEST:
        return None
    return ResidentTask(spark.sparkContext)


class ResidentTask:
    """Runs one thing after the other in a task that stays, or in the next one.

    Whatever goes wrong there ends the task, and its job, whose error is raised here. A task that
    has left has not taken what came too late for it: another one gets that.

    Args:
        spark: Its tasks run on this machine.
    """

    def __init__(self, spark: SparkContext) -> None:
        self._spark = spark
        self._jobs: SimpleQueue[_Job | None] | None = None
        self._stay: _Stay | None = None

    def run(self, asked: Asked) -> list[Given]:
        """Run something, and return what it gives."""
        order = _pickled(asked)
        if self._stay is not None and time.monotonic() > self._stay.until:
            self.leave()
        while True:
            self._stay = self._stay or self._begin()
            try:
                answer = self._stay.ask(order)
            except BaseException:
                self.leave()
                raise
            if answer is not None:
                return answer
            self.leave()

    def leave(self) -> None:
        """Let the task end that stays, if one does; its slot is free soon."""
        if self._stay is not None:
            self._stay.connection.close()
            self._stay = None

    def close(self) -> None:
        """Let everything end, before Spark does; this may be used no more."""
        ended = None if self._stay is None else self._stay.ended
        self.leave()
        if self._jobs is not None:
            self._jobs.put(None)
        if ended is not None:
            with suppress(Exception):
                ended.result(_LEAVES_S)

    def _begin(self) -> "_Stay":
        if self._jobs is None:  # one thread, because each has a connection to the JVM of its own
            self._jobs = SimpleQueue()
            Thread(
                target=_run_jobs, args=(self._jobs,), name="kaflow-resident", daemon=True
            ).start()
        folder = Path(mkdtemp(prefix="kaflow-task-"))  # only this account may look into it
        try:
            with socket.socket(socket.AF_UNIX) as listening:
                listening.bind(str(folder / "s"))
                listening.listen(1)
                listening.settimeout(_LOOK_S)
                job = _Job(self._spark, folder / "s", Future())
                self._jobs.put(job)
                while True:
                    try:
                        connected = listening.accept()[0]
                    except TimeoutError:
                        if job.ended.done():
                            job.ended.result()  # else it has come and gone, and is accepted next
                    else:
                        opened = Connection(connected.detach())
                        return _Stay(opened, job.ended, time.monotonic() + _MOST_S)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class _Job:
    spark: SparkContext
    address: Path
    ended: "Future[None]"

    def run(self) -> None:
        try:
            stay = partial(_stay, str(self.address))
            numbers(self.spark, 1).mapPartitionsWithIndex(stay).collect()
        except BaseException as error:
            self.ended.set_exception(error)
        else:
            self.ended.set_result(None)


def _run_jobs(jobs: "SimpleQueue[_Job | None]") -> None:
    while (job := jobs.get()) is not None:
        job.run()


@dataclass(frozen=True, slots=True)
class _Stay:
    connection: "Connection[bytes, list[Given]]"
    ended: "Future[None]"
    """Of its job."""
    until: float

    def ask(self, order: bytes) -> list[Given] | None:
        """Return the answer; None: the task had left before it took the order."""
        with suppress(EOFError, OSError):
            if self.connection.poll():  # it says nothing unasked, so this is its end
                return None
            self.connection.send_bytes(order)
            return self.connection.recv()
        self.connection.close()
        self.ended.result()  # raises what has ended it
        return None


def _stay(address: str, _number: int, _nothing: Iterable[int]) -> Iterator[Given]:
    """Do what the driver asks for, until it takes its time or lets go."""
    with socket.socket(socket.AF_UNIX) as connecting:
        connecting.connect(address)
        opened: Connection[list[Given], bytes] = Connection(connecting.detach())
    with opened as connection:
        while connection.poll(_IDLE_S):
            try:
                order = connection.recv_bytes()
            except EOFError:
                break
            asked: Asked = pickle.loads(order)
            connection.send([*asked()])
            del asked
            gc.collect()  # as Spark's workers do after each task, but here no one waits for it
    yield from ()
