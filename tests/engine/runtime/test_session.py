from pathlib import Path

from kaflow_engine.runtime.session import SETTINGS, session_settings


def test_the_author_may_override_settings_but_not_retries():
    conf = {"spark.driver.memory": "3g", "spark.task.maxFailures": "4"}
    settings = session_settings(conf, [])
    assert settings["spark.driver.memory"] == "3g"
    assert settings["spark.task.maxFailures"] == "1"
    assert settings["spark.ui.enabled"] == SETTINGS["spark.ui.enabled"]


def test_jars_and_java_options_come_on_top_of_the_authors():
    conf = {"spark.jars": "mine.jar", "spark.driver.extraJavaOptions": "-Xss4m"}
    settings = session_settings(conf, [Path("/a.jar"), Path("/b.jar")])
    assert settings["spark.jars"] == "mine.jar,/a.jar,/b.jar"
    assert settings["spark.driver.extraJavaOptions"].startswith("-Xss4m -Dlog4j2.conf")


def test_the_logging_file_is_there():
    options = session_settings({}, [])["spark.driver.extraJavaOptions"]
    assert Path(options.rpartition("file:")[2]).exists()
