"""Dead letters of a journal are put into it again, each once, with what says for whom."""
# pyright: basic

import pytest

from kaflow_engine.connectors.journal.folder import journal_folder
from kaflow_engine.connectors.journal.journal import KEY_HEADER, Journal
from kaflow_engine.connectors.journal.redriven import take_again
from kaflow_engine.connectors.journal.source import JournalSource
from kaflow_engine.connectors.letters import Letter
from kaflow_engine.errors import StateError
from kaflow_engine.model.config import Config
from kaflow_engine.model.letters import FROM, REDRIVE
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.runtime.dead_letters import redrive as module
from kaflow_engine.runtime.dead_letters.kept import KeptLetters

NOW = 1_700_000_000_000


def letter(name, topic, headers=()):
    return Letter(
        letter=name,
        pipeline="p",
        topic=topic,
        partition=0,
        offset=3,
        timestamp=NOW,
        phase="decode",
        error="E",
        message="m",
        attempt=1,
        key=None,
        value=name.encode(),
        headers=headers,
        redriven=False,
        backfill=None,
        chain=None,
    )


LETTERS = (
    letter("s-1:0", "hook", ((KEY_HEADER, b"k1"), ("h", b"x"))),
    letter("s-1:1", "made", ((FROM, b"seed 0"),)),
    letter("s-1:2", "hook"),
)


@pytest.fixture
def spec(monkeypatch):
    kept = KeptLetters(letters=LETTERS, id="files:1")
    monkeypatch.setattr(module, "kept_letters", lambda spec, config: kept)
    columns = {"columns": {"a": "INT"}}
    return PipelineSpec.model_validate(
        {
            "name": "p",
            "query": "SELECT a FROM hook UNION ALL SELECT a FROM made",
            "output": {"type": "console"},
            "sources": {
                "hook": {"type": "webhook", "listen": "127.0.0.1:8099", **columns},
                "made": {"type": "generator", "values": {"a": {"distribution": "sequence"}}},
            },
        }
    )


def test_records_of_a_journal_come_again(spec, tmp_path):
    config = Config.model_validate({"state": {"rocksdb": {"path": str(tmp_path)}}})
    with pytest.raises(StateError, match="the journal of source 'hook' is not on this machine"):
        module.redrive(spec, config, None)
    journal = Journal(journal_folder(tmp_path, "p", "hook"), NOW)
    assert [each.letter for each in module.redrivable(spec, config, LETTERS)] == ["s-1:0", "s-1:2"]
    sent = module.redrive(spec, config, "letter = 's-1:0'")
    assert [each.letter for each in sent] == ["s-1:0"]
    assert [each.redriven for each in module.find_letters(spec, config)] == [True, False, False]
    assert [each.letter for each in module.redrive(spec, config, None)] == ["s-1:2"]
    assert module.redrive(spec, config, None) == []
    assert take_again(journal, NOW + 1) == 2
    journal.close()
    source = JournalSource(name="hook", folder=journal.folder)
    rows = source.read({0: 0}, source.latest()).to_pylist()
    assert [row["value"] for row in rows] == [b"s-1:0", b"s-1:2"]
    headers = [{each["key"]: each["value"] for each in row["headers"]} for row in rows]
    assert [each[REDRIVE] for each in headers] == [b"2:p", b"2:p"]
    assert headers[0]["h"] == b"x"
    assert b"k1" not in headers[0].values()  # a key that is known would keep it out
