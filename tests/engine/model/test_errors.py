"""Every mistake of a file, and the exact words for it: rows of `fixtures/errors/files`."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kaflow_engine.errors import ModelError
from kaflow_engine.model.config import Config
from kaflow_engine.model.configuration.load_config import load_config
from kaflow_engine.model.files.shapes import Inside, file_keys, inside
from kaflow_engine.model.pipelines.loader import load_pipeline
from kaflow_engine.model.project import load_project
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.pipeline_plan import check_pipeline

ROWS = Path(__file__).parents[2] / "fixtures" / "errors" / "files"
LIBRARIES = ("Input should", "pydantic", "yaml.", "found character", "expected <", "Error(")
VALUES = ("", "text", "[]", "[[]]", "{a: [b]}")


def rows(name: str) -> list[Any]:
    found = yaml.load((ROWS / f"{name}.yaml").read_text(), yaml.CSafeLoader)
    return [pytest.param(row, id=row["title"]) for row in found]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(name: str, text: str) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "row",
    [
        row
        for name in sorted({path.stem for path in ROWS.iterdir()} - {"projects", "configuration"})
        for row in rows(name)
    ],
)
def test_pipeline_file(row: dict[str, Any]) -> None:
    path = write("p.yaml", row["file"])
    config = Config.model_validate(row.get("configuration", {}))
    with pytest.raises(ModelError) as raised:
        check_pipeline(load_pipeline(path, row.get("variables", {})), config)
    assert str(raised.value) == row["error"]
    assert raised.value.exit_code == 10


@pytest.mark.parametrize("row", rows("projects"))
def test_project(row: dict[str, Any]) -> None:
    for name, text in row["files"].items():
        write(name, text)
    with pytest.raises(ModelError) as raised:
        load_project([Path(path) for path in row["paths"]], variables={})
    assert str(raised.value) == row["error"]


@pytest.mark.parametrize("row", rows("configuration"))
def test_configuration(row: dict[str, Any]) -> None:
    path = write("kaflow.yaml", row["file"]) if "file" in row else None
    with pytest.raises(ModelError) as raised:
        load_config(path, row.get("environment", {}), row.get("overrides", {}))
    assert str(raised.value) == row["error"]


def assert_ours(text: str, file: str) -> None:
    assert not any(words in text for words in LIBRARIES)
    assert all(line.startswith((file, "  hint:")) for line in text.splitlines())


def keys_below(within: Inside, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if within.values is not None:
        return [path, *keys_below(within.values, (*path, "some"))]
    found = [path] if path else []
    for key, name in set(file_keys(within.spec).values()) if within.spec else ():
        assert within.spec is not None
        found += keys_below(inside(within.spec.model_fields[name].annotation), (*path, key))
    return sorted(found)


@pytest.mark.parametrize("path", keys_below(Inside(spec=PipelineSpec)), ids=".".join)
def test_no_library_speaks_about_a_pipeline(path: tuple[str, ...]) -> None:
    for value in VALUES:
        file = write("p.yaml", "".join(f"{'  ' * i}{key}:\n" for i, key in enumerate(path)))
        file.write_text(f"{file.read_text().rstrip()} {value}\n")
        with pytest.raises(ModelError) as raised:
            load_pipeline(file, {})
        assert not any(words in str(raised.value) for words in LIBRARIES)
        assert all(
            line.startswith(("p.yaml:", "  hint:")) for line in str(raised.value).split("\n")
        )


@pytest.mark.parametrize("path", keys_below(Inside(spec=Config)), ids=".".join)
def test_no_library_speaks_about_a_configuration(path: tuple[str, ...]) -> None:
    for value in VALUES:
        file = write("c.yaml", "".join(f"{'  ' * i}{key}:\n" for i, key in enumerate(path)))
        file.write_text(f"{file.read_text().rstrip()} {value}\n")
        assert_ours(said_about(file), "c.yaml:")


def said_about(configuration: Path) -> str:
    try:
        load_config(configuration, {})
    except ModelError as error:
        return str(error)
    return ""
