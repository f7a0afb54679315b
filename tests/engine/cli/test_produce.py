"""Lines that are sent to a topic."""
# pyright: basic

import pytest
from click.testing import CliRunner

from kaflow_engine.cli.run.produce import command
from kaflow_engine.errors import ModelError
from tests.committed import read_committed


def produce(broker, topic, lines, *options):
    return CliRunner().invoke(
        command,
        [topic, "--brokers", broker.bootstrap, *options],
        input=lines,
        catch_exceptions=False,
    )


@pytest.mark.kafka
def test_lines_are_records_of_a_topic_that_is_created(broker, unique):
    lines = '{"u": 1, "n": "a"}\n\n{"u": null}\r\n{"u": "x"}'
    done = produce(
        broker, unique, lines, "--key", "u", "--header", "source=web", "--header", "a=b=c"
    )
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == (
        f"created topic {unique}\nsent 3 records to {unique} at {broker.bootstrap}\n"
    )
    rows = read_committed(broker.settings, unique).to_pylist()
    assert [(row["key"], row["value"]) for row in rows] == [
        (b"1", b'{"u": 1, "n": "a"}'),
        (None, b'{"u": null}'),
        (b"x", b'{"u": "x"}'),
    ]
    assert rows[0]["headers"] == [
        {"key": "source", "value": b"web"},
        {"key": "a", "value": b"b=c"},
    ]
    # what is sent before a line that has no key stays sent
    with pytest.raises(ModelError, match="line 2 of the standard input has no field 'u'"):
        produce(broker, unique, '{"u": 2}\nno JSON\n{"u": 3}\n', "--key", "u")
    assert len(read_committed(broker.settings, unique)) == 4


def test_a_header_needs_a_name():
    done = CliRunner().invoke(command, ["t", "--header", "web"])
    assert done.exit_code == 2
    assert "'web' is not a header; write it as source=web" in done.output
