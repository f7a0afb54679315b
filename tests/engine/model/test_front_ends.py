"""Front ends stand in one table: a file goes to the one that knows it."""

from pathlib import Path
from typing import Any

import pytest

from kaflow_engine.errors import Location
from kaflow_engine.model import project
from kaflow_engine.model.files.tree import Entries, from_plain
from kaflow_engine.model.files.yaml_file import Document
from kaflow_engine.model.front_ends import FRONT_ENDS
from kaflow_engine.model.pipelines.contract import Lowered
from kaflow_engine.model.pipelines.loader import read_pipeline
from kaflow_engine.model.project import load_project, read_project
from kaflow_engine.model.search import search

PIPELINE = "name: p\nquery: SELECT id FROM a\noutput: {topic: out, key: id}\n"


class Copies:
    """A made-up front end: `copy: {from: …, to: …}`."""

    name = "copy file"
    endings = (".yaml", ".yml")
    example = "orders.yaml"
    variables = ()

    def claims(self, text: str) -> bool:
        return False

    def role(self, file: Any) -> Any:
        root = file.document.root if file.document else None
        return "pipeline" if isinstance(root, Entries) and root.get("copy") else None

    def lower(self, files: Any, around: Any) -> Lowered:
        readings = []
        for file in files:
            copy = file.document.root.get("copy")
            about = {
                "name": file.path.stem,
                "query": f"SELECT * FROM {copy.get('from').text}",
                "output": {"topic": copy.get("to").text, "format": "json"},
            }
            tree = from_plain(about, copy.at)
            readings.append(read_pipeline(Document(root=tree, mistakes=())))
        return Lowered(readings=tuple(readings))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for module in (project, search):
        monkeypatch.setattr(module, "FRONT_ENDS", (*FRONT_ENDS, Copies()))
    (tmp_path / "p.yaml").write_text(PIPELINE)
    return tmp_path


def test_another_front_end_is_a_row_of_the_table(folder: Path) -> None:
    (folder / "mirror.yaml").write_text("copy: {from: a, to: b}\n")
    found = load_project([folder])
    assert [(each.name, each.output.topic) for each in found.pipelines] == [
        ("mirror", "b"),
        ("p", "out"),
    ]


def test_a_file_that_two_front_ends_know_is_refused_by_their_names(folder: Path) -> None:
    path = folder / "both.yaml"
    path.write_text(PIPELINE.replace("name: p", "name: q") + "copy: {from: a, to: b}\n")
    (mistake,) = read_project([folder]).mistakes
    assert str(mistake) == (
        f"{path}: this could be each of: pipeline file, copy file\n"
        "  hint: remove the keys that belong to the other one"
    )


def test_a_named_file_that_no_front_end_knows_is_read_as_a_pipeline_file(folder: Path) -> None:
    path = folder / "other.yaml"
    path.write_text("servers: [a, b]\n")
    assert read_project([folder]).mistakes == ()
    assert read_project([path]).mistakes != ()


class Arrows:
    """A made-up front end with an ending of its own: `a -> b`, which is no YAML of a pipeline."""

    name = "arrow"
    endings = (".arrow.sql",)
    example = "orders.arrow.sql"
    variables = ()

    def claims(self, text: str) -> bool:
        return False

    def role(self, file: Any) -> Any:
        assert file.document is None
        return "pipeline"

    def lower(self, files: Any, around: Any) -> Lowered:
        readings = []
        for file in files:
            source, _, target = file.path.read_text().strip().partition(" -> ")
            about = {
                "name": file.path.name.removesuffix(".arrow.sql"),
                "query": f"SELECT * FROM {source}",
                "output": {"topic": target, "format": "json"},
            }
            tree = from_plain(about, Location(str(file.path), 1))
            readings.append(read_pipeline(Document(root=tree, mistakes=())))
        return Lowered(readings=tuple(readings))


@pytest.mark.parametrize("folder_name", ["anywhere", "models"])
def test_files_go_to_the_front_end_with_the_longest_ending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder_name: str
) -> None:
    for module in (project, search):
        monkeypatch.setattr(module, "FRONT_ENDS", (*FRONT_ENDS, Arrows()))
    folder = tmp_path / folder_name
    folder.mkdir()
    (folder / "mirror.arrow.sql").write_text("a -> b\n")
    (pipeline,) = load_project([folder]).pipelines
    assert (pipeline.name, pipeline.output.target) == ("mirror", "b")
    assert pipeline.place("name").file == str(folder / "mirror.arrow.sql")


def test_sql_files_outside_of_models_are_no_models(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(PIPELINE)
    (tmp_path / "notes.sql").write_text("SELECT 1\n")
    (pipeline,) = load_project([tmp_path]).pipelines
    assert pipeline.name == "p"
