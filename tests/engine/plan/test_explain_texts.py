"""What `kaflow explain` prints of whole pipelines, letter by letter: rows of `fixtures/explain`.

A row is a pipeline file and the text beside it. With columns that a registry would give, the plan
is whole; without them explain says what it can. `KAFLOW_WRITE_TEXTS=1` writes the texts again, to
be read before they are committed.
"""

import os
from pathlib import Path

import pytest
import yaml

from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import load_pipeline
from kaflow_engine.plan.explain.draw import draw
from kaflow_engine.plan.explain.explain import explain

FIXTURES = Path(__file__).parents[2] / "fixtures"
TEXTS = FIXTURES / "explain"
CASES = Path(__file__).parents[2] / "acceptance" / "cases"
FILES = sorted((FIXTURES / "pipelines").glob("*.yaml")) + sorted(TEXTS.glob("*.yaml"))


def columns_of_case(pipeline: str) -> dict[str, tuple[Column, ...]]:
    """Return the columns that the acceptance case of a pipeline gives to its topics."""
    cases = [
        case
        for name in ("seeds_json", "seeds_avro")
        for case in yaml.load((CASES / f"{name}.yaml").read_text(), yaml.CSafeLoader)
    ]
    topics = next((c["topics"] for c in cases if pipeline in str(c["pipeline"])), {})
    return {
        topic: tuple(Column(name, kind) for name, kind in types.items())
        for topic, types in topics.items()
    }


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
@pytest.mark.parametrize("known", [True, False], ids=["columns known", "columns unknown"])
def test_explain(file: Path, known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    spec = load_pipeline(Path(file.name), {})
    columns = columns_of_case(file.stem) if known else {}
    text = "\n".join([*draw(explain(spec, Config(warehouse="/warehouse"), columns)), ""])
    expected = TEXTS / f"{file.stem}{'' if known else '.unknown'}.txt"
    if os.environ.get("KAFLOW_WRITE_TEXTS"):
        expected.write_text(text)
    assert text == expected.read_text()
