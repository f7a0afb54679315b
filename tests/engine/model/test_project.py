"""Files and folders become a project."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kaflow_engine.errors import ModelError, UnknownName
from kaflow_engine.model.configuration.load_config import load_config
from kaflow_engine.model.project import load_project, read_project

PIPELINE = "name: {}\nquery: SELECT 1\noutput:\n  topic: out\n"


def write(path: Path, name: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(PIPELINE.format(name))
    return path


def names(*paths: Path, config: Path | None = None) -> list[str]:
    settings = load_config(config, {}) if config else None
    return [pipeline.name for pipeline in load_project(paths, settings, {}).pipelines]


def test_folders_are_searched_and_files_read_once(tmp_path: Path) -> None:
    one = write(tmp_path / "b.yaml", "one")
    write(tmp_path / "deep" / "er" / "a.yml", "two")
    (tmp_path / "notes.txt").write_text("not a pipeline")
    assert names(tmp_path) == ["one", "two"]
    assert names(one, tmp_path, tmp_path / "deep" / ".." / "b.yaml") == ["one", "two"]
    assert names(one) == ["one"]


def test_files_about_something_else_are_left_out(tmp_path: Path) -> None:
    write(tmp_path / "a.yaml", "one")
    (tmp_path / "workspace.yaml").write_text("load_from:\n  - python_file: defs.py\n")
    (tmp_path / "compose.yaml").write_text("services: {db: {image: postgres}}\n")
    assert names(tmp_path) == ["one"]
    (tmp_path / "b.yaml").write_text("nmae: two\nqurey: SELECT 1\n")  # but this is a mistake
    with pytest.raises(ModelError, match="unknown key 'nmae'"):
        names(tmp_path)


def test_the_configuration_is_left_out(tmp_path: Path) -> None:
    write(tmp_path / "a.yaml", "one")
    (tmp_path / "kaflow.yaml").write_text("state: {ttl: 1h}\n")
    other = tmp_path / "config.yaml"
    other.write_text("state: {ttl: 2h}\n")
    assert names(tmp_path, config=other) == ["one"]


def test_links_are_followed_once_and_hidden_folders_are_not(tmp_path: Path) -> None:
    """A volume of Kubernetes: links into `..data`, which is itself a link."""
    write(tmp_path / "..2026" / "a.yaml", "one")
    (tmp_path / "..data").symlink_to("..2026")
    (tmp_path / "a.yaml").symlink_to("..data/a.yaml")
    (tmp_path / "loop").symlink_to(tmp_path)
    assert names(tmp_path) == ["one"]
    elsewhere = tmp_path.with_name(f"{tmp_path.name}-elsewhere")
    write(elsewhere / "b.yaml", "two")
    (tmp_path / "linked").symlink_to(elsewhere)
    assert names(tmp_path) == ["one", "two"]


def test_a_pipeline_by_name(tmp_path: Path) -> None:
    write(tmp_path / "a.yaml", "one")
    project = load_project([tmp_path], variables={})
    assert project.pipeline("one").place("output", "topic").line == 4
    with pytest.raises(UnknownName, match="unknown pipeline 'on'\n  hint: did you mean 'one'"):
        project.pipeline("on")


CASES = "- case: one\n  pipeline: a.yaml\n"


def test_cases_in_a_folder_are_no_pipelines(tmp_path: Path) -> None:
    write(tmp_path / "a.yaml", "one")
    (tmp_path / "tests").mkdir()
    cases = tmp_path / "tests" / "cases.yaml"
    cases.write_text(CASES)
    assert names(tmp_path) == ["one"]
    with pytest.raises(ModelError, match="this looks like a case file"):
        names(tmp_path, cases)
    with pytest.raises(ModelError, match="no pipeline in this folder"):
        names(tmp_path / "tests")


def test_what_can_be_read_beside_mistakes(tmp_path: Path) -> None:
    write(tmp_path / "b.yaml", "two")
    write(tmp_path / "a.yaml", "one")
    (tmp_path / "c.yaml").write_text("name: three\n")
    files = read_project([tmp_path, tmp_path / "none.yaml"], variables={})
    assert [spec.name for spec in files.pipelines] == ["one", "two"]
    assert [Path(mistake.at.file).name for mistake in files.mistakes if mistake.at] == [
        "c.yaml",
        "c.yaml",
        "none.yaml",
    ]


def test_loading_is_light() -> None:
    heavy = {"pyspark", "duckdb", "pyarrow", "dagster", "confluent_kafka", "sqlglot"}
    code = f"import sys, kaflow_engine.model.project; print({heavy!r} & set(sys.modules))"
    out = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert out.stdout.strip() == "set()"
