"""Archives of Java's classes: where they are, when they are used, and that Spark uses its own."""
# pyright: basic

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kaflow_engine.runtime.spark import class_archive
from kaflow_engine.runtime.spark.class_archive import (
    archive_options,
    archive_path,
    make_spark_archive,
    recording,
    spark_archive,
)
from kaflow_engine.runtime.spark.java import find_java

JAVA = find_java()


@pytest.fixture
def jar(tmp_path, monkeypatch):
    monkeypatch.setenv("KAFLOW_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "a.jar"
    path.write_text("x")
    return path


def test_an_archive_belongs_to_one_java_and_one_class_path(jar):
    known = archive_path("spark", JAVA, [jar])
    assert archive_path("spark", JAVA, [jar]) == known
    others = [archive_path("kafka", JAVA, [jar]), archive_path("spark", JAVA, [])]
    others.append(archive_path("spark", replace(JAVA, version=99), [jar]))
    jar.write_text("xy")
    others.append(archive_path("spark", JAVA, [jar]))
    assert len({known, *others}) == 5


def test_an_archive_is_used_as_soon_as_it_is_whole(jar):
    archive = archive_path("spark", JAVA, [jar])
    assert archive_options(archive) == ()
    with recording(archive):
        option = archive_options(archive)[-1]
        assert option.startswith("-XX:ArchiveClassesAtExit=")
        Path(option.partition("=")[2]).write_text("classes")
        assert not archive.exists()
    assert archive_options(archive)[-1] == f"-XX:SharedArchiveFile={archive}"


def test_nothing_is_left_of_a_java_that_makes_none(jar):
    archive = archive_path("spark", JAVA, [jar])
    with recording(archive):
        pass
    assert list(archive.parent.iterdir()) == []
    assert archive_options(archive) == ()


def test_old_archives_go(jar, monkeypatch):
    monkeypatch.setattr(class_archive, "_KEPT", 2)
    for number in range(4):
        archive = archive_path(f"n{number}", JAVA, [jar])
        with recording(archive):
            Path(archive_options(archive)[-1].partition("=")[2]).write_text("classes")
        os.utime(archive, (number, number))
    assert sorted(p.name.partition("-")[0] for p in archive.parent.glob("*.jsa")) == ["n2", "n3"]


USE = """
from pathlib import Path
from pyspark import SparkContext
from kaflow_engine.model.config import SparkConfig
from kaflow_engine.runtime.spark.java import find_java
from kaflow_engine.runtime.spark.session import start_session
session = start_session(SparkConfig(), find_java(), ())
print(session.sparkContext._gateway.proc.pid)
print(Path(f"/proc/{session.sparkContext._gateway.proc.pid}/maps").read_text())
session.stop()
"""


@pytest.mark.spark
def test_spark_maps_its_archive():
    make_spark_archive()
    done = subprocess.run([sys.executable, "-c", USE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert str(spark_archive(JAVA)) in done.stdout
