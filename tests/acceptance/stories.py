# pyright: basic
"""Stories of several runs, told side by side, each with a pipeline of its own.

A story is a generator: it yields a run to start, or one to wake up, and gets how it ended.
"""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

from deltalake import DeltaTable

from kaflow_engine.connectors.kafka.admin import create_topic, delete_topics
from kaflow_engine.connectors.kafka.client import open_producer
from kaflow_engine.connectors.kafka.run_log.transactions import control_topic
from kaflow_engine.errors import SinkError, StateError
from tests.acceptance.crash_here import Order
from tests.acceptance.crash_pipeline import PARTITIONS, START, create_outputs, delivered, log_of

MOST = 80
"""Records of a batch."""


class World:
    """What all stories share."""

    def __init__(self, broker, order, bucket, folder):
        self.kafka, self.folder = broker.settings, folder
        self.topic = replace(order, most=MOST)
        self.table = replace(self.topic, warehouse=str(folder / "warehouse"))
        self.several = replace(self.table, several=4)
        self.safe = {"bucket": bucket.endpoint, "snapshots": "1ms"}
        self.peace = {}

    def named(self, order, name):
        create_outputs(self.kafka, name, bool(order.several))
        return replace(order, name=name)

    def copy(self, order):
        """Copy the state directory of a pipeline; return the same run over the copy."""
        path = self.folder / f"copy-{order.name}"
        shutil.copytree(directory_of(order), path / order.name)
        return replace(order, path=str(path))

    def forget(self, order):
        delete_topics(self.kafka, [control_topic(order.name)])

    def rows(self, order):
        """Return the rows that a pipeline has written, sorted."""
        if order.warehouse:
            return _rows_in(f"{order.warehouse}/{order.name}")
        found = delivered(self.kafka, order.name, log_of(Path(order.path), order.name))
        return sorted(row for rows in found.rows.values() for row in rows)

    def rows_of(self, order, which):
        """Return the rows of one of several tables, sorted."""
        return _rows_in(f"{order.warehouse}/{order.name}.{which}")


def _rows_in(folder):
    table = DeltaTable(folder).to_pyarrow_table()
    return sorted(json.dumps(row, default=str) for row in table.to_pylist())


def directory_of(order):
    return Path(order.path) / order.name


def asleep(order, at):
    """Return the same run, which stops once where `at` says."""
    file = Path(order.path) / f"{order.name}.crash"
    file.write_text(f"{at}:pause")
    return replace(order, crash_at=f"@{file}")


def take_back(order, *batches):
    for number in batches:
        for kind in ("batches", "commits"):
            (directory_of(order) / kind / f"{number}.json").unlink(missing_ok=True)
        shutil.rmtree(directory_of(order) / "changes" / str(number), ignore_errors=True)
    shutil.rmtree(directory_of(order) / "copies", ignore_errors=True)


def empty(directory, keep=("lease",)):
    for path in directory.iterdir():
        if path.name not in keep:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def killed(end):
    assert (end.how, end.said) == ("killed", ""), end


def done(end):
    assert (end.how, end.said) == ("ended", ""), end


def refused(end, said):
    assert end.exit_code == StateError.exit_code, end
    assert re.search(said, end.said, re.DOTALL), end.said


def taken_over(end):
    assert end.exit_code == SinkError.exit_code, end
    assert "has taken over" in end.said


def load_profiles(kafka, name):
    """Fill one topic, which alone makes no row."""
    for side, count in PARTITIONS.items():
        create_topic(kafka, f"{name}.{side}", count)
    producer = open_producer(kafka, **{"enable.idempotence": True}).api
    for number in range(3 * MOST):
        value = json.dumps({"id": str(number), "tier": "t"}).encode()
        producer.produce(f"{name}.profiles", value, b"%d" % number, timestamp=START)
    assert producer.flush(30) == 0


def tell(forks, stories):
    """Tell stories to their ends; return of each None, or what went wrong."""
    told, going = {}, {name: (story, None) for name, story in stories.items()}
    while going:
        wanted = {}
        for name, (story, end) in going.items():
            try:
                wanted[name] = story, story.send(end)
            except StopIteration:
                told[name] = None
            except Exception as error:
                told[name] = error
        runs = [name for name, (_, what) in wanted.items() if isinstance(what, Order)]
        wakes = [name for name in wanted if name not in runs]
        ends = dict(zip(runs, forks.run([wanted[name][1] for name in runs]), strict=True))
        if wakes:
            woken = forks.wake([wanted[name][1] for name in wakes])
            ends |= dict(zip(wakes, woken, strict=True))
        going = {name: (wanted[name][0], ends[name]) for name in wanted}
    return told
