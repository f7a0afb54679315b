"""How settings are written for a JVM, so that it reads what was meant."""

import pytest
from pyspark import SparkConf

from kaflow_engine.errors import RunError
from kaflow_engine.runtime.spark.launch import argument_file, properties_text, start_jvm


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("spark.a", "1", "spark.a=1"),
        ("spark.a b", " c", r"spark.a\ b=\ c"),
        ("k", "a=b:c#d!e\\f", r"k=a\=b\:c\#d\!e\\f"),
        ("k", "a\nb\r\tc\f", r"k=a\nb\r\tc\f"),
        ("k", "é€😀", r"k=\u00e9\u20ac\ud83d\ude00"),
        ("k", "", "k="),
    ],
)
def test_settings_are_written_as_java_reads_them(name, value, line):
    assert properties_text({name: value}) == f"{line}\n"


def test_options_are_written_as_java_reads_them():
    options = ["-Xss4m", '-Da=b "c"\\', "-Dlines=1\n2", "-Dhash=#1"]
    assert argument_file(options) == (
        '"-Xss4m"\n"-Da=b \\"c\\"\\\\"\n"-Dlines=1\\n2"\n"-Dhash=#1"\n'
    )


def test_a_quotation_without_an_end_is_named():
    conf = SparkConf(loadDefaults=False).set("spark.driver.extraJavaOptions", "-Da='b")
    with pytest.raises(RunError, match=r"'spark.driver.extraJavaOptions' cannot be read"):
        start_jvm(conf)
