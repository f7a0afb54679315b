"""What tasks give reaches those that take it, whatever carries it, and nothing is left of it."""

from pathlib import Path
from unittest.mock import Mock

import pyarrow as pa
import pytest
from pyspark import SparkConf, SparkFiles

from kaflow_engine.runtime.jobs import jobs
from kaflow_engine.runtime.jobs.carriers import InFiles, ThroughSpark, carrier_of
from kaflow_engine.runtime.jobs.jobs import FrameJob, RangeJob
from tests.engine.runtime.records_here import records

EVENTS = records("events", [{"id": f"u{i}"} for i in range(10)])


def _shared_out(batches):
    for batch in batches:
        for offset in batch["offset"].to_pylist():
            yield offset % 2, str(offset).encode()


def _put_together(streams):
    yield 7, b",".join(sorted(pa.py_buffer(each).to_pybytes() for each in streams))


def _fails(streams):
    raise ValueError(f"after {len(list(streams))}")


def _jobs(spark):
    frame = spark.range(0, 10, 1, 2).selectExpr("id AS offset")
    reads = [[EVENTS.slice(0, 4).to_batches], [EVENTS.slice(4).to_batches]]
    return RangeJob.over(spark.sparkContext, reads, _shared_out), FrameJob.over(frame, _shared_out)


def _left():
    return list(Path(SparkFiles.getRootDirectory()).glob("exchange-*"))


@pytest.mark.spark
@pytest.mark.parametrize("carrier", [InFiles.begin, ThroughSpark])
@pytest.mark.parametrize("kind", [0, 1])
def test_every_carrier_brings_the_same(spark, monkeypatch, carrier, kind):
    monkeypatch.setattr(jobs, "carrier_of", lambda _: carrier())
    given = _jobs(spark)[kind].exchanged(2, _put_together).collect()
    assert sorted(given) == [(7, b"0,2,4,6,8"), (7, b"1,3,5,7,9")]
    assert _left() == []


@pytest.mark.spark
@pytest.mark.parametrize("kind", [0, 1])
def test_nothing_is_left_of_a_job_that_fails(spark, kind):
    with pytest.raises(Exception, match="after "):
        _jobs(spark)[kind].exchanged(2, _fails).collect()
    assert _left() == []


@pytest.mark.spark
def test_only_the_account_reads_the_files(spark):
    carrier = InFiles.begin()
    ((_, name),) = carrier.send([(0, b"row")])
    assert Path(carrier.folder).stat().st_mode & 0o077 == 0
    assert Path(name.decode()).stat().st_mode & 0o077 == 0
    carrier.end()
    assert _left() == []


@pytest.mark.parametrize(
    ("master", "encrypted", "kind"),
    [
        ("local[2]", "true", ThroughSpark),
        ("local-cluster[2,1,512]", "false", ThroughSpark),
        ("spark://host:7077", "false", ThroughSpark),
        ("local[2]", "false", InFiles),
    ],
)
def test_files_are_for_one_machine(monkeypatch, tmp_path, master, encrypted, kind):
    gone = tmp_path / "since" / "days"
    monkeypatch.setattr(SparkFiles, "getRootDirectory", lambda: str(gone))
    conf = SparkConf(loadDefaults=False, _jvm=None).set("spark.io.encryption.enabled", encrypted)
    context = Mock(master=master, getConf=lambda: conf)
    assert type(carrier_of(context)) is kind
