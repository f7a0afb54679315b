"""Preprocessors of packages: the text that is parsed, places of mistakes, and what is refused."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from pydantic import BaseModel, ConfigDict

from kaflow_engine.api.preprocessors import GivenText, Location, ModelError
from kaflow_engine.cli.main import kaflow
from kaflow_engine.errors import KaflowError
from kaflow_engine.model.configuration.load_config import load_config
from kaflow_engine.plan.planner.project import check_project, load_checked
from kaflow_engine.plugins.installed import FORMATS, PREPROCESSORS
from tests.conftest import OfferPlugins

FIXTURES = Path(__file__).parents[2] / "fixtures"
HERE = "tests.engine.plugins.test_preprocessors"
FOUND = yaml.safe_load((FIXTURES / "errors" / "preprocessors.yaml").read_text())
ROWS = [pytest.param(row, id=row["title"]) for row in FOUND]
PIPELINE = """\
name: p
query: SELECT id FROM a
output: {topic: o}
topics: {a: {columns: {id: INT}}}
"""


class Options(BaseModel):
    model_config = ConfigDict(extra="forbid")

    topic: str
    size: int = 1


class Nothing(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Named:
    """Writes a name of the configuration for `<topic>`, below a line of its own."""

    options = Options

    def rewrite(self, given: GivenText) -> str:
        assert isinstance(given.options, Options)
        if "<topic>" not in given.text:
            return given.text
        return "# made\n" + given.text.replace("<topic>", given.options.topic)


class Upper:
    """Writes `<topic>` for `topic!`, so that it must come before `Named`; or fails."""

    options = Nothing

    def rewrite(self, given: GivenText) -> Any:
        if "fails" in given.text:
            raise ValueError("not today")
        if "wrong" in given.text:
            raise ModelError("no such thing", Location(given.file, 2), "write another one")
        return None if "nothing" in given.text else given.text.replace("topic!", "<topic>")


class Other:
    options = Nothing


@pytest.fixture(autouse=True)
def installed(offer_plugins: OfferPlugins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    classes = {"named": "Named", "upper": "Upper", "other": "Other"}
    here = {f"acme.{name}": f"{HERE}:{each}" for name, each in classes.items()}
    offer_plugins({PREPROCESSORS: here, FORMATS: {"zig.zag": "x:y"}})
    monkeypatch.chdir(tmp_path)


def configured(*preprocessors: str, **settings: str) -> None:
    said = {"preprocessors": [*preprocessors], "plugins": {"acme.named": {"settings": settings}}}
    Path("kaflow.yaml").write_text(yaml.safe_dump(said, sort_keys=False))


def test_files_are_rewritten_one_preprocessor_after_the_other() -> None:
    configured("acme.upper", "acme.named", topic="orders")
    Path("p.yaml").write_text(PIPELINE.replace("topic: o", "topic: topic!"))
    Path("q.yaml").write_text(PIPELINE.replace("name: p", "name: q"))
    project = load_checked([Path()], load_config(Path("kaflow.yaml"), {}))
    p, q = project.pipelines
    assert (p.writes[0].target, q.writes[0].target) == ("orders", "o")
    assert str(p.place("query")) == "p.yaml:3 (rewritten by acme.upper, acme.named)"
    assert str(q.place("query")) == "q.yaml:2"


def test_the_environment_names_them_too() -> None:
    Path("p.yaml").write_text(PIPELINE.replace("topic: o", "topic: <topic>"))
    settings = {"acme.named": {"settings": {"topic": "orders"}}}
    config = load_config(
        None, {"KAFLOW__PREPROCESSORS": "acme.upper, acme.named"}, {"plugins": settings}
    )
    (p,) = load_checked([Path("p.yaml")], config).pipelines
    assert p.writes[0].target == "orders"


@pytest.mark.parametrize("row", ROWS)
def test_mistakes(row: dict[str, Any]) -> None:
    Path("kaflow.yaml").write_text(row["config"])
    Path("p.yaml").write_text(row.get("pipeline", PIPELINE))
    with pytest.raises(KaflowError) as caught:
        load_checked([Path("p.yaml")], load_config(Path("kaflow.yaml"), {}))
    assert str(caught.value) == row["error"].replace("HERE", HERE)


def test_other_files_are_still_read_where_one_cannot_be_rewritten() -> None:
    configured("acme.upper")
    Path("p.yaml").write_text("# fails\n")
    Path("q.yaml").write_text(PIPELINE)
    found = check_project([Path()], load_config(Path("kaflow.yaml"), {}))
    assert len(found.mistakes) == 1
    assert [each.name for each in found.pipelines] == [None, "p"]


def test_files_of_other_front_ends_stay_as_they_are() -> None:
    configured("acme.upper")
    Path("p.processor.sql").write_text("-- fails\nINSERT INTO o SELECT STREAM id FROM a;\n")
    found = check_project([Path("p.processor.sql")], load_config(Path("kaflow.yaml"), {}))
    assert "fails" not in "".join(map(str, found.mistakes))


def test_explain_prints_the_text_that_is_parsed() -> None:
    configured("acme.named", topic="orders")
    Path("p.yaml").write_text("name: p\nquery: SELEC\noutput: {topic: <topic>}\n")
    shown = CliRunner().invoke(kaflow, ["explain", "p.yaml", "--source"], prog_name="kaflow")
    assert shown.exit_code == 0, shown.output
    assert shown.stdout == (
        "p.yaml (rewritten by acme.named):\n"
        "   1  # made\n   2  name: p\n   3  query: SELEC\n   4  output: {topic: orders}\n"
    )
    Path("p.yaml").write_text(PIPELINE)
    shown = CliRunner().invoke(kaflow, ["explain", ".", "p", "--source"], prog_name="kaflow")
    assert shown.stdout.startswith("p.yaml:\n   1  name: p\n")


CASE = """\
- case: a pipeline of this folder
  pipeline: p.yaml
  given: [{topic: a, at: 0, value: {id: 1}}]
  expect: [{topic: orders, value: {id: 1}}]
- case: a case that names one
  pipeline: p.yaml
  config: {preprocessors: [acme.upper]}
  given: []
  expect: []
"""


def test_cases_run_what_is_rewritten_and_name_none() -> None:
    configured("acme.named", topic="orders")
    Path("p.yaml").write_text(PIPELINE.replace("topic: o", "topic: <topic>"))
    Path("cases.yaml").write_text(CASE)
    result = CliRunner().invoke(
        kaflow, ["test", "cases.yaml", "--config", "kaflow.yaml"], prog_name="kaflow"
    )
    assert "ok      a pipeline of this folder" in result.output
    assert "a case cannot name preprocessors" in result.output
