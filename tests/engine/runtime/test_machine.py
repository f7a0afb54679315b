from collections.abc import Mapping
from pathlib import Path

import pytest

from kaflow_engine.errors import RunError
from kaflow_engine.extras import EXTRAS
from kaflow_engine.runtime.spark import machine
from kaflow_engine.runtime.spark.machine import inspect_machine


def test_everything_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KAFLOW_CACHE", str(tmp_path / "not" / "yet"))
    checks = {check.name: check for check in inspect_machine()}
    assert set(checks) == {
        *("python", "java", "pyspark", "duckdb", "rocksdb", "native library"),
        *(extra.distribution for extra in EXTRAS.values()),
        *("spark-kafka jars", "broker jars", "registry", "memory", "cores", "disk"),
    }
    assert checks["python"].state == checks["pyspark"].state == "ok"
    jars = checks["broker jars"]
    assert (jars.state, jars.fatal) == ("missing", False)
    assert jars.cure == "fetched on first use; now: kaflow doctor --fetch kafka-broker"


def test_a_missing_java_is_fatal(monkeypatch: pytest.MonkeyPatch):
    def none(environ: Mapping[str, str] | None = None) -> None:
        raise RunError("no Java >= 17 found", hint="install one")

    monkeypatch.setattr(machine, "find_java", none)
    (java,) = [check for check in inspect_machine() if check.name == "java"]
    assert java.fatal
    assert java.cure == "install one"


def test_little_memory_is_low_but_not_fatal(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(machine, "_memory", lambda: 1 << 30)
    (memory,) = [check for check in inspect_machine() if check.name == "memory"]
    assert (memory.state, memory.fatal) == ("low", False)
    assert memory.found == "1.0 GiB, 4 GiB are recommended"
