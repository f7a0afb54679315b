"""Words for true and false: rules understand them as specifications do."""

from pathlib import Path

import pytest

from kaflow_engine.errors import ModelError
from kaflow_engine.model.pipelines.loader import load_pipeline
from kaflow_engine.model.sources.database_specs import PostgresSourceSpec

TRUE = ("true", "True", "TRUE", "yes", "Yes", "y", "on", "t", "1", '"true"', '"ON"')
FALSE = ("false", "FALSE", "no", "n", "off", "f", "0", '"no"')


def attached(tmp_path: Path, word: str, *, more: str) -> PostgresSourceSpec:
    path = tmp_path / "p.yaml"
    path.write_text(
        "name: p\nquery: SELECT t.a, s.b FROM t LEFT JOIN s ON s.a = t.a\noutput: {topic: o}\n"
        "sources:\n"
        f"  s: {{type: postgres, table_name: orders, attached: {word}, {more}, "
        "columns: {a: INT, b: INT}}\n"
    )
    found = load_pipeline(path, {}).sources["s"]
    assert isinstance(found, PostgresSourceSpec)
    return found


@pytest.mark.parametrize("word", TRUE)
def test_words_for_true(tmp_path: Path, word: str) -> None:
    assert attached(tmp_path, word, more="refresh: 5s").attached
    with pytest.raises(ModelError, match="its rows are looked up, and are no records"):
        attached(tmp_path, word, more="page_size: 1000")


@pytest.mark.parametrize("word", FALSE)
def test_words_for_false(tmp_path: Path, word: str) -> None:
    assert not attached(tmp_path, word, more="page_size: 1000").attached
    with pytest.raises(ModelError, match="the table is read, and not looked up"):
        attached(tmp_path, word, more="refresh: 5s")


@pytest.mark.parametrize("word", ["yep", "1.0", "2"])
def test_words_that_are_neither(tmp_path: Path, word: str) -> None:
    with pytest.raises(ModelError, match=f"expected true or false, found '{word}'"):
        attached(tmp_path, word, more="where: a > 1")
