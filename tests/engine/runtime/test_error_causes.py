"""What errors of a run came of: layer by layer, from a task to the command line and its JSON."""

import json
from errno import ECONNRESET, ENOTCONN, ETIMEDOUT
from typing import NoReturn

import click
import pytest
from click.testing import CliRunner

from kaflow_engine.cli import main
from kaflow_engine.cli.run.summary import error_data
from kaflow_engine.connectors.http.errors import HttpAway
from kaflow_engine.errors import (
    KaflowError,
    RetriableError,
    SinkAway,
    SinkUnfit,
    StateError,
    UserError,
    causes_of,
    noted,
)
from kaflow_engine.masking import remember
from kaflow_engine.runtime.failures.error_wire import TaskFailed
from kaflow_engine.runtime.failures.failures import carried, is_outage, to_error


class Py4JJavaError(Exception):
    """Stands for what py4j raises."""


Py4JJavaError.__module__ = "py4j.protocol"


def in_task(doing: str, error: Exception, cause: Exception | None = None) -> KaflowError:
    """Return an error of a task as the driver gets it."""
    try:
        with noted(doing):
            raise error from cause
    except Exception as raised:
        text = str(carried(raised))
    try:
        raise Py4JJavaError(f"org.apache.spark.SparkException: {text}\n\tat scala")
    except Exception as raised:
        return to_error(raised)


OUTPUT = "output 'postgres:app.t': 500 rows of batch 3"


@pytest.mark.parametrize(
    ("error", "message", "causes", "internal", "retriable"),
    [
        (
            in_task(OUTPUT, SinkAway("postgres is away"), ConnectionRefusedError(111, "refused")),
            "postgres is away",
            [OUTPUT, "ConnectionRefusedError: [Errno 111] refused"],
            False,
            True,
        ),
        (
            in_task(OUTPUT, SinkUnfit("no table 'app.t'"), ValueError("relation is missing")),
            "no table 'app.t'",
            [OUTPUT, "ValueError: relation is missing"],
            False,
            False,
        ),
        (
            in_task("script 'scored': 9 rows of batch 1", KeyError("tier")),
            "a task failed: KeyError: 'tier'",
            ["script 'scored': 9 rows of batch 1"],
            True,
            True,
        ),
        (
            in_task(OUTPUT, ValueError("bad"), RuntimeError("its own reason")),
            "a task failed: ValueError: bad",
            [OUTPUT, "RuntimeError: its own reason"],
            True,
            True,
        ),
        (
            in_task(
                "handler 'e': 2 rows of batch 1", HttpAway("no answer: refused"), OSError("refused")
            ),
            "no answer: refused",
            ["handler 'e': 2 rows of batch 1"],
            False,
            True,
        ),
        (
            in_task(OUTPUT, ConnectionResetError(ECONNRESET, "reset")),
            f"a connection failed: ConnectionResetError: [Errno {ECONNRESET}] reset",
            [OUTPUT],
            False,
            True,
        ),
        (
            in_task(OUTPUT, OSError(ENOTCONN, "not connected")),
            f"a connection failed: OSError: [Errno {ENOTCONN}] not connected",
            [OUTPUT],
            False,
            True,
        ),
        (
            in_task(OUTPUT, OSError(28, "No space left on device")),
            "a task failed: OSError: [Errno 28] No space left on device",
            [OUTPUT],
            True,
            True,
        ),
        (
            in_task("plugin", UserError("option 'url' is wrong"), KeyError("host")),
            "option 'url' is wrong",
            ["plugin", "KeyError: 'host'"],
            False,
            False,
        ),
        (in_task("plugin", RetriableError("try later")), "try later", ["plugin"], False, True),
        (StateError("state is damaged"), "state is damaged", [], False, False),
        (RuntimeError("what no one foresaw"), "RuntimeError: what no one foresaw", [], True, False),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_error_says_what_it_came_of(
    error: Exception, message: str, causes: list[str], internal: bool, retriable: bool
) -> None:
    found = error_data(error)
    assert json.loads(json.dumps(found)) == {
        "message": message,
        "hint": None,
        "internal": internal,
        "retriable": retriable,
        "causes": causes,
    }


@pytest.mark.parametrize(
    "error",
    [
        *(ConnectionRefusedError(), ConnectionResetError(), ConnectionAbortedError()),
        *(OSError(ENOTCONN, "not connected"), TimeoutError(ETIMEDOUT, "late"), InterruptedError()),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_connection_that_failed_in_a_task_is_waited_for(error: OSError) -> None:
    found = in_task(OUTPUT, error)
    assert type(found) is RetriableError
    assert is_outage(found)


def test_the_command_prints_a_line_for_each_and_secrets_are_masked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    remember(["pa55word-of-a-test"])
    cause = ValueError(f"login pa55word-of-a-test\n{'x' * 400}")

    @click.command()
    def fails() -> NoReturn:
        raise in_task(OUTPUT, SinkUnfit("refused", hint="look"), cause)

    monkeypatch.setattr(main.LazyGroup, "get_command", lambda self, ctx, name: fails)
    done = CliRunner().invoke(main.kaflow, ["run"], prog_name="kaflow")
    first, hint, output, reason = done.stderr.splitlines()
    assert (first, hint) == ("error: refused", "  hint: look")
    assert output == f"  caused by: {OUTPUT}"
    assert reason.startswith("  caused by: ValueError: login *")
    assert reason.endswith("x…")
    assert "pa55word" not in done.stderr
    assert done.exit_code == SinkUnfit.exit_code


def test_an_error_that_is_raised_from_itself_has_an_end() -> None:
    error = in_task(OUTPUT, SinkUnfit("refused"))
    with pytest.raises(SinkUnfit) as caught:
        raise error from error
    assert causes_of(caught.value) == (OUTPUT,)


def test_what_spark_wraps_errors_in_is_left_out() -> None:
    error = TaskFailed("a task failed")
    error.__cause__ = Py4JJavaError("a page of Java")
    assert causes_of(error) == ()
