import re
from pathlib import Path

import pytest

from kaflow_engine.model.config import SparkConfig
from kaflow_engine.runtime.session import SETTINGS, java_options, session_settings


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
    options = java_options(own)
    file = re.search(r"file:(\S+)", options)
    if file:
        assert Path(file[1]).exists()
        options = options.replace(file[1], "F")
    assert options.replace("-Darrow.enable_unsafe_memory_access=true", "-Darrow") == found
