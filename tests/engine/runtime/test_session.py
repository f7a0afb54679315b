import io
import logging
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kaflow_engine import masking
from kaflow_engine.errors import RunError
from kaflow_engine.flow.sources import HistoryParams
from kaflow_engine.model.config import Config, KafkaConfig, SparkConfig
from kaflow_engine.runtime import application
from kaflow_engine.runtime.application import spark_settings
from kaflow_engine.runtime.spark.session import (
    FIXED,
    ON_A_CLUSTER,
    SETTINGS,
    _forward,
    as_submitted,
    driver_options,
    java_options,
    python_of_tasks,
    session_settings,
)
from tests.engine.runtime.plans_here import filter_plan

LIGHT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xms64m"
OWN = "-XX:-TieredCompilation -XX:+UseG1GC -Xms1g"
HISTORY = HistoryParams(
    path="/data", format="parquet", partition="p", offset="o", timestamp="t", key=None, value=None
)


def settings_with(master="local[2]", jars=(), **conf):
    found = {name.replace("_", "."): value for name, value in conf.items()}
    return session_settings(SparkConfig(master=master, conf=found), jars)


def test_the_author_may_override_settings_but_not_retries():
    settings = settings_with(
        spark_driver_memory="3g", spark_task_maxFailures="4", spark_shuffle_compress="true"
    )
    assert settings["spark.driver.memory"] == "3g"
    assert settings["spark.shuffle.compress"] == "true"
    assert settings["spark.task.maxFailures"] == "1"
    assert settings["spark.ui.enabled"] == SETTINGS["spark.ui.enabled"]


@pytest.mark.parametrize(
    ("master", "compress"), [("local[2]", "false"), ("local", "false"), ("spark://host:7077", None)]
)
def test_only_what_travels_is_compressed(master, compress):
    assert settings_with(master).get("spark.shuffle.compress") == compress


@pytest.mark.parametrize(("master", "own"), [("local[2]", True), ("spark://host:7077", False)])
def test_workers_are_forked_with_the_engine_where_it_is_installed(master, own):
    assert ("spark.python.daemon.module" in settings_with(master)) is own


def test_jars_come_on_top_of_the_authors():
    jars = [Path("/a.jar"), Path("/b.jar")]
    assert settings_with(jars=jars, spark_jars="mine.jar")["spark.jars"] == "mine.jar,/a.jar,/b.jar"


@pytest.mark.parametrize(
    ("own", "found"),
    [
        ("", "-Dlog4j2.configurationFile=file:F -XX:+UseParallelGC -Darrow"),
        ("-Xss4m", "-Xss4m -Dlog4j2.configurationFile=file:F -XX:+UseParallelGC -Darrow"),
        ("-XX:+UseG1GC", "-XX:+UseG1GC -Dlog4j2.configurationFile=file:F -Darrow"),
        (
            "-Dlog4j2.configurationFile=mine -Darrow.enable_unsafe_memory_access=false",
            "-Dlog4j2.configurationFile=mine -Darrow.enable_unsafe_memory_access=false "
            "-XX:+UseParallelGC",
        ),
    ],
)
def test_java_options_come_on_top_of_the_authors(own, found):
    options = driver_options(own)
    file = re.search(r"file:(\S+)", options)
    if file:
        assert Path(file[1]).exists()
        options = options.replace(file[1], "F")
    assert options.replace("-Darrow.enable_unsafe_memory_access=true", "-Darrow") == found


def test_executors_get_the_options_of_every_jvm():
    settings = settings_with("spark://host:7077", spark_executor_extraJavaOptions="-Xss4m")
    assert settings["spark.executor.extraJavaOptions"] == java_options("-Xss4m")
    assert "log4j2" not in settings["spark.executor.extraJavaOptions"]
    assert "spark.executor.extraJavaOptions" not in settings_with()


def test_a_driver_of_a_cluster_listens_where_executors_can_reach_it():
    settings = settings_with("spark://host:7077")
    assert "spark.driver.host" not in settings
    assert ON_A_CLUSTER.items() <= settings.items()
    assert FIXED.items() <= settings.items()
    assert settings_with()["spark.driver.host"] == "127.0.0.1"


@pytest.mark.parametrize(
    ("master", "conf", "environ", "python"),
    [
        ("local[2]", {"spark.pyspark.python": "/conf"}, {"PYSPARK_PYTHON": "/env"}, None),
        ("yarn", {"spark.pyspark.python": "/conf"}, {"PYSPARK_PYTHON": "/env"}, "/conf"),
        ("yarn", {}, {"PYSPARK_PYTHON": "/env"}, "/env"),
        ("yarn", {}, {}, None),
    ],
)
def test_the_python_of_tasks_may_be_named_on_a_cluster(master, conf, environ, python):
    found = python_of_tasks(SparkConfig(master=master, conf=conf), environ)
    assert found == (python or sys.executable)


def test_what_was_submitted_holds_unless_the_configuration_says_otherwise():
    config = SparkConfig(master="yarn", conf={"spark.executor.cores": "2"})
    given = {"spark.master": "yarn", "spark.executor.cores": "4", "spark.jars": "hdfs:/x/a.jar"}
    found = as_submitted(config, [Path("/a.jar")], given).conf
    assert found["spark.executor.cores"] == "2"
    assert found["spark.jars"] == "hdfs:/x/a.jar"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"spark.master": "yarn"}, "was given the master yarn"),
        ({"spark.jars": "b.jar"}, "was not given the jars"),
        ({}, "was not given the jars"),
    ],
)
def test_what_was_submitted_must_fit(given, told):
    with pytest.raises(RunError, match=told):
        as_submitted(SparkConfig(master="local[2]"), [Path("/a.jar")], given)


def test_what_spark_says_holds_no_secret(caplog, monkeypatch):
    monkeypatch.setattr(masking, "_known", set())
    masking.remember(["Key-4711-of-mine"])
    _forward(io.BytesIO(b"WARN Thing: could not log in with Key-4711-of-mine\n"))
    assert "could not log in with ***" in caplog.text


@pytest.mark.parametrize(
    ("printed", "level"),
    [
        ("Traceback (most recent call last):", logging.DEBUG),
        ('  File "pyspark/daemon.py", line 95, in worker', logging.DEBUG),
        ("BrokenPipeError: [Errno 32] Broken pipe", logging.DEBUG),
        ("\tat org.apache.spark.Executor.run(Executor.scala:1)", logging.DEBUG),
        ('Exception in thread "main" java.lang.IllegalStateException: no', logging.DEBUG),
        ('Exception in thread "main" java.lang.OutOfMemoryError: heap', logging.WARNING),
        ("ModuleNotFoundError: No module named 'mine'", logging.WARNING),
    ],
)
def test_what_spark_prints_has_a_level(printed, level, caplog):
    caplog.set_level(logging.DEBUG)
    _forward(io.BytesIO(printed.encode() + b"\n"))
    assert [record.levelno for record in caplog.records] == [level]


def test_java_may_ask_the_server_of_tokens(monkeypatch):
    monkeypatch.setattr(application, "library", lambda: None)
    endpoint = "https://idp/token"
    kafka = {"properties": {"sasl.oauthbearer.token.endpoint.url": endpoint}}
    option = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={endpoint}"
    plain = Config.model_validate({"spark": {"conf": {"spark.driver.extraJavaOptions": "-Xint"}}})
    assert spark_settings(plain, ()) == plain.spark
    asks = plain.model_copy(update={"kafka": KafkaConfig.model_validate(kafka)})
    found = spark_settings(asks, ())
    assert found.conf["spark.driver.extraJavaOptions"] == f"-Xint {option}"
    assert found.conf["spark.executor.extraJavaOptions"] == option


@pytest.mark.parametrize(
    ("own", "native", "history", "expected"),
    [
        ("", True, False, LIGHT),
        ("-Xint", True, False, f"-Xint {LIGHT}"),
        (OWN, True, False, OWN),
        ("-Xint", True, True, "-Xint"),
        ("-Xint", False, False, "-Xint"),
    ],
    ids=["it schedules", "with others", "the author decides", "files", "Spark reads topics"],
)
def test_java_is_light_where_no_record_passes_it(monkeypatch, own, native, history, expected):
    monkeypatch.setattr(application, "library", lambda: object() if native else None)
    plan = filter_plan("p", "events", "out")
    (source,) = plan.sources
    past = HISTORY if history else None
    plan = replace(plan, sources=(replace(source, history=past),))
    conf = {"spark.driver.extraJavaOptions": own}
    config = Config.model_validate({"spark": {"conf": conf}})
    assert spark_settings(config, [plan]).conf["spark.driver.extraJavaOptions"] == expected
