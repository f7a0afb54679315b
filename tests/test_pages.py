"""Pages say what is there: their links, the files and keys that they name, and their commands."""
# pyright: basic

import re
import shlex
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from kaflow_engine.cli.main import kaflow
from kaflow_engine.model.config import Config
from kaflow_engine.model.specs import PipelineSpec
from tests.page import DOCS, commands
from tests.test_readme import ROOT

ENGINE = ROOT / "engine" / "kaflow_engine"
CONTRIBUTING = ROOT / ".github" / "CONTRIBUTING.md"
PAGES = [ROOT / "README.md", CONTRIBUTING, *sorted(DOCS.rglob("*.md"))]
FIXTURES = ROOT / "tests" / "fixtures"
MIGRATION = "from-kaflowsql.md"


@cache
def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head).strip().lower().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        target, _, anchor = link.partition("#")
        if "://" in link:
            continue
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), link
        assert not anchor or anchor in anchors(file), link


def recipes():
    """Return title to text of the recipes of the guide."""
    parts = CONTRIBUTING.read_text().split("\n## ")
    return {part.partition("\n")[0]: part for part in parts if part.startswith("Add ")}


def paths(text):
    """Return what looks like a file or a folder."""
    return re.findall(r"`([\w.]+/[\w./]*)`", text)


def test_the_guide_names_files_that_exist():
    named = paths(CONTRIBUTING.read_text())
    assert len(named) > 40
    assert [
        name for name in named if not ((ENGINE / name).exists() or (ROOT / name).exists())
    ] == []


def test_the_guide_has_a_recipe_for_each_kind():
    assert list(recipes()) == [
        f"Add {kind}"
        for kind in (
            *("an operator", "a sink", "a source", "a kind of transform", "a format"),
            "a front end",
        )
    ]


@pytest.mark.parametrize(
    ("recipe", "classes"),
    [
        ("Add an operator", {"KeyedJoin", "Ledger"}),
        ("Add a sink", {"TopicSink", "TableSink", "ConnectorSink"}),
    ],
)
def test_a_recipe_names_each_match(recipe, classes):
    found = set()
    for file in ENGINE.rglob("*.py"):
        text = file.read_text()
        if "assert_never(" in text and any(f"case {name}(" in text for name in classes):
            found.add(str(file.relative_to(ENGINE)))
    steps = re.split(r"^\d\. ", recipes()[recipe], flags=re.MULTILINE)
    (step,) = [step for step in steps if "each `match`" in step or "every `match`" in step]
    assert set(paths(step)) == found


@pytest.mark.parametrize("command", re.findall(r"\bmake [a-z-]+", CONTRIBUTING.read_text()))
def test_a_target_of_the_guide(command):
    done = subprocess.run(
        [*command.split(), "--dry-run"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def keys(node, *above):
    """Return the keys of a mapping with a value, as paths with dots."""
    for key, value in node.items():
        if isinstance(value, dict):
            yield from keys(value, *above, key)
        else:
            yield ".".join((*above, key))


def listed(title):
    """Return the keys in the table below a heading."""
    (part,) = [
        p for p in DOCS.joinpath(MIGRATION).read_text().split("\n## ") if p.startswith(title)
    ]
    return re.findall(r"^\| `([\w.]+)` \|", part, re.MULTILINE)


def is_key(model, path):
    """Tell whether a specification has a key."""
    name, _, rest = path.partition(".")
    fields = {field.alias or key: field for key, field in model.model_fields.items()}
    if name not in fields or not rest:
        return name in fields
    found = [each for each in specs_in(fields[name].annotation) if is_key(each, rest)]
    return bool(found)


def specs_in(annotation):
    """Return the specifications in an annotation such as `OutputSpec | None`."""
    if hasattr(annotation, "model_fields"):
        return [annotation]
    parts = getattr(annotation, "__args__", ())
    return [spec for part in parts for spec in specs_in(part)]


def test_each_key_of_a_configuration_is_listed():
    file = yaml.safe_load(FIXTURES.joinpath("config/global.yaml").read_text())
    assert listed("Keys of the configuration") == list(keys(file))
    assert [key for key in keys(file) if not is_key(Config, key)] == []


def test_each_key_of_a_pipeline_is_listed():
    found = listed("Keys of a pipeline")
    assert [key for key in found if not is_key(PipelineSpec, key)] == []
    for file in FIXTURES.joinpath("pipelines").glob("*.yaml"):
        for key in keys(yaml.safe_load(file.read_text())):
            assert re.sub(r"(overrides)\..*", r"\1", key) in found, (file.name, key)


def test_each_example_is_linked():
    text = DOCS.joinpath(MIGRATION).read_text()
    for file in FIXTURES.joinpath("pipelines").glob("*.yaml"):
        assert f"tests/fixtures/pipelines/{file.name})" in text
        assert f"tests/fixtures/explain/{file.stem}.txt)" in text


@pytest.mark.parametrize("command", [c for c in commands(MIGRATION) if " run " not in c])
def test_a_command_for_its_files(command, tmp_path, monkeypatch):
    program, *arguments = shlex.split(command)
    assert program == "kaflow"
    if arguments[0] == "test":
        monkeypatch.chdir(ROOT)
    else:
        shutil.copytree(FIXTURES / "pipelines", tmp_path / "pipelines")
        shutil.copyfile(FIXTURES / "config" / "global.yaml", tmp_path / "config.yaml")
        monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(kaflow, arguments, prog_name="kaflow")
    assert done.exit_code == 0, done.output
