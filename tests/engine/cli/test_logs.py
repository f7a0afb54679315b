"""Log lines: what each belongs to, in text and in JSON, and levels of single loggers."""

import json
import logging

import pytest

from kaflow_engine.cli.live_view.logs import log_messages
from kaflow_engine.model.config import LoggingConfig
from kaflow_engine.telemetry.log_context import logging_of

RUNTIME, KAFKA = logging.getLogger("kaflow.runtime"), logging.getLogger("kaflow.kafka")


def said(capsys, **config):
    with log_messages(LoggingConfig.model_validate(config)):
        RUNTIME.warning("before")
        with logging_of("enrich"):
            RUNTIME.warning("it starts")
            with logging_of("enrich", 3, 17):
                RUNTIME.warning("password=abc is wrong")
                KAFKA.debug("detail")
            RUNTIME.warning("it ends")
    return capsys.readouterr().err.splitlines()


def test_text(capsys):
    assert [line[9:] for line in said(capsys)] == [
        "warning kaflow.runtime: before",
        "warning kaflow.runtime [enrich]: it starts",
        "warning kaflow.runtime [enrich run 3 batch 17]: password=*** is wrong",
        "warning kaflow.runtime [enrich]: it ends",
    ]


def test_json(capsys):
    found = [json.loads(line) for line in said(capsys, format="json")]
    assert [(e.get("pipeline"), e.get("run"), e.get("batch")) for e in found] == [
        (None, None, None),
        ("enrich", None, None),
        ("enrich", 3, 17),
        ("enrich", None, None),
    ]
    assert found[2]["message"] == "password=*** is wrong"


@pytest.mark.parametrize(
    ("config", "lines"),
    [
        ({"levels": {"kaflow.kafka": "debug"}}, 5),
        ({"level": "error"}, 0),
        ({"level": "error", "levels": {"kaflow.runtime": "warn"}}, 4),
        ({"levels": {"kaflow.runtime": "error"}}, 0),
    ],
)
def test_each_logger_has_a_level_of_its_own(capsys, config, lines):
    assert len(said(capsys, **config)) == lines
    assert RUNTIME.level == logging.NOTSET
