import hashlib
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from kaflow_engine.errors import SourceError
from kaflow_engine.runtime.spark import jars
from kaflow_engine.runtime.spark.jars import Artifact, artifacts, fetch, fetched

NOWHERE = "http://127.0.0.1:9"
GOOD = b"a jar"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A local Maven repository with one artifact, which is all that a bundle consists of."""
    root = tmp_path / "repository"
    sha256 = hashlib.sha256(GOOD).hexdigest()
    pinned = {"spark-kafka": {"org.example:thing_2.13:1.0": sha256}}
    monkeypatch.setattr(jars, "_pinned", lambda: pinned)
    monkeypatch.setenv("KAFLOW_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("M2_REPO", str(root))
    monkeypatch.setenv("DEFAULT_ARTIFACT_REPOSITORY", NOWHERE)
    return root


def put(repository: Path, content: bytes) -> None:
    (artifact,) = artifacts("spark-kafka")
    path = repository / artifact.path
    path.parent.mkdir(parents=True)
    path.write_bytes(content)


def test_a_coordinate_names_a_path():
    plain = Artifact("org.apache.kafka:kafka_2.13:4.3.1", "")
    assert plain.path == "org/apache/kafka/kafka_2.13/4.3.1/kafka_2.13-4.3.1.jar"
    archive = Artifact("io.apicurio:app:2.6:tar.gz:all", "")
    assert archive.file == "app-2.6-all.tar.gz"


def test_everything_is_pinned_once():
    for bundle in ("spark-kafka", "kafka-broker", "registry"):
        listed = artifacts(bundle)
        assert all(len(a.sha256) == 64 for a in listed)
        assert len({a.file for a in listed}) == len(listed)
    assert [a.file for a in artifacts("spark-kafka")] == [
        "spark-sql-kafka-0-10_2.13-4.2.0.jar",
        "spark-token-provider-kafka-0-10_2.13-4.0.0.jar",
        "kafka-clients-3.9.2.jar",
        "commons-pool2-2.13.1.jar",
    ]


def test_the_second_call_looks_at_nothing(repository: Path):
    put(repository, GOOD)
    said: list[str] = []
    assert not fetched("spark-kafka")
    (path,) = fetch("spark-kafka", said.append)
    assert path.read_bytes() == GOOD
    assert [line.split(" into ")[0] for line in said] == [
        "kaflow: fetching spark-kafka: 1 of 1 files",
        "kaflow: fetched spark-kafka: 0 MB",
    ]
    path.unlink()
    assert fetch("spark-kafka", said.append) == (path,)
    assert len(said) == 2


def test_another_file_of_that_name_is_refused(repository: Path):
    put(repository, b"not the jar")
    with pytest.raises(SourceError, match="is not the file that kaflow was tested with"):
        fetch("spark-kafka", lambda line: None)
    assert not fetched("spark-kafka")


@pytest.mark.usefixtures("repository")
def test_without_network_the_error_says_what_to_do():
    with pytest.raises(SourceError) as caught:
        fetch("spark-kafka", lambda line: None)
    assert str(caught.value).startswith(
        "cannot fetch 'org.example:thing_2.13:1.0' (ConnectionError)\n"
        "  hint: this needs a Maven repository once: check the network, "
        "set DEFAULT_ARTIFACT_REPOSITORY to a mirror, or copy the folder"
    )


@pytest.mark.kafka
def test_processes_that_fetch_at_once_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KAFLOW_CACHE", str(tmp_path))
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        first, second = pool.map(fetch, ["spark-kafka", "spark-kafka"])
    assert first == second
    for path, artifact in zip(first, artifacts("spark-kafka"), strict=True):
        assert hashlib.sha256(path.read_bytes()).hexdigest() == artifact.sha256
