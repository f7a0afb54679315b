"""The shape of the project: what no tool can be set to check in `pyproject.toml`."""

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parent.parent
LIMIT = 300
MODULES = 15
ALLOWED_LONG: set[str] = set()

PLANNING = [
    *(
        "errors",
        "model.specs",
        "model.config",
        "model.pipelines.loader",
        "sql",
        "formats",
        "plan",
        "state",
    ),
    *("plan", "state", "operators.rows.task", "connectors", "testing.sample.fake_stream"),
]


def python_files() -> Iterator[Path]:
    for folder in ("engine", "kaflow_dagster", "definitions", "bench", "tests"):
        yield from sorted(ROOT.joinpath(folder).rglob("*.py"))


def test_no_file_is_long():
    lengths = {str(f.relative_to(ROOT)): len(f.read_text().splitlines()) for f in python_files()}
    assert {name for name, length in lengths.items() if length > LIMIT} == ALLOWED_LONG


def test_no_folder_is_crowded():
    counts = Counter(
        str(file.parent.relative_to(ROOT))
        for folder in ("engine", "kaflow_dagster", "bench")
        for file in ROOT.joinpath(folder).rglob("*.py")
        if file.name != "__init__.py"
    )
    assert {folder: n for folder, n in counts.items() if n > MODULES} == {}


def test_planning_loads_neither_spark_nor_dagster():
    names = ", ".join(f"kaflow_engine.{name}" for name in PLANNING)
    heavy = {"pyspark", "dagster", "great_expectations", "jgo", "polars"}
    code = f"import sys, {names}; print({heavy} & set(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert out.stderr == ""
    assert out.stdout.strip() == "set()"


def test_packages_begin_with_a_sentence_and_only_pass_names_on():
    for file in python_files():
        if file.name != "__init__.py":
            continue
        first, *rest = ast.parse(file.read_text()).body
        assert isinstance(first, ast.Expr), file
        assert all(
            isinstance(node, ast.ImportFrom | ast.Assign) or is_lazy(node) for node in rest
        ), file


def is_lazy(node: ast.stmt) -> bool:
    """Tell whether a statement names what is imported on first use."""
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def test_imports_are_absolute():
    relative = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for file in python_files()
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert relative == []


def test_the_engine_folder_is_not_a_package():
    assert not (ROOT / "engine" / "__init__.py").exists()


def test_lock_files_name_no_address_and_hash_everything():
    for file in ROOT.glob("requirements*.lock"):
        lines = file.read_text().splitlines()
        assert not [line for line in lines if "://" in line or " @ " in line], file
        named = [line for line in lines if not line.startswith(" ")]
        assert all(line.endswith("\\") for line in named), file


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_both_packages_and_their_data(wheel: Path):
    with ZipFile(wheel) as archive:
        names = set(archive.namelist())
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {
        "kaflow_dagster",
        "kaflow_engine",
    }
    assert names >= {
        "kaflow_engine/py.typed",
        "kaflow_engine/runtime/spark/jars.toml",
        "kaflow_engine/cli/doctor.py",
        "kaflow_engine/cli/new_project/gitignore",
        "kaflow_dagster/__init__.py",
        "kaflow_dagster/py.typed",
    }
    mine = {str(f.relative_to(ROOT / "engine")) for f in ROOT.glob("engine/kaflow_engine/**/*.py")}
    assert names >= mine


@pytest.mark.services
def test_the_wheel_runs_away_from_the_sources(wheel: Path, tmp_path: Path):
    target = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--target", str(target), str(wheel)], check=True)
    code = (
        f"import sys; sys.path.insert(0, {str(target)!r})\n"
        "import kaflow_engine.runtime.spark.jars as jars; print(jars.__file__)\n"
        "print(len(jars.artifacts('spark-kafka')))\n"
    )
    out = subprocess.run(
        [sys.executable, "-I", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    place, count = out.stdout.splitlines()
    assert Path(place).is_relative_to(target)
    assert count == "4"
