"""Python functions in queries: cases cut, replayed and in several tasks, once on Spark."""
# pyright: basic

import sys
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from kaflow_engine.duck.functions import catalogue
from kaflow_engine.duck.functions.catalogue import CALLING, FAILED, Sources, found, known, use
from kaflow_engine.duck.queries import query
from kaflow_engine.errors import ModelError, RunError
from kaflow_engine.masking import remember
from kaflow_engine.operators.row_errors.quarantine import guarded
from kaflow_engine.testing.cases.cases import run_case
from kaflow_engine.testing.cases.cuts import Cuts
from kaflow_engine.testing.cases.executor import LocalExecutor
from kaflow_engine.testing.cases.files import load_cases
from kaflow_engine.testing.cases.pipeline import Surroundings
from kaflow_engine.testing.cases.report import report_lines
from tests.page import blocks

pytestmark = pytest.mark.slow

IMPORT = "from kaflow_engine.api.functions import function"
NAMES = ("same", "said")
FAILING = """
import pyarrow as pa
from kaflow_engine.api.functions import function

@function
def fails(n: int) -> str:
    if n in (7, 21, 33):
        raise ValueError("s3cret-value and " + "more\\n" * 200)
    return str(n)

@function
def fails_at_once(n: pa.Int64Array) -> pa.Int64Array:
    if set(n.to_pylist()) & {7, 21, 33}:
        raise ValueError("s3cret-value")
    return n

@function
def of_another_type(n: int) -> str:
    return {7: 1, 21: None, 33: [1]}.get(n, "text")

@function
def no_array(n: pa.Int64Array) -> pa.Int64Array:
    return pa.scalar(1) if set(n.to_pylist()) & {7, 21, 33} else n

@function
def uses_up_memory(n: int) -> str:
    raise MemoryError

@function
def uses_up_memory_later(n: int) -> str:
    if n == 3:
        raise ValueError("3")
    raise MemoryError
"""
FOLDER = Path(__file__).parents[2] / "fixtures" / "functions"
AROUND = Surroundings(config_path=FOLDER / "kaflow.yaml", variables={})
CASES = [pytest.param(c, id=c.name) for c in load_cases(FOLDER / "cases.yaml", {})]


def check(case, cuts, *, executor=None, replay=False, around=AROUND):
    result = run_case(
        case, executor or LocalExecutor(), cuts=Cuts.of(cuts), replay=replay, around=around
    )
    assert result.passed, "\n".join(report_lines(result))


@pytest.mark.parametrize("case", CASES)
def test_as_given_and_replayed(case):
    check(case, "given", replay=True)


@pytest.mark.parametrize("case", CASES)
def test_each_record_by_itself(case):
    check(case, "each")


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("cuts", ["all", "random:1", "random:2"])
def test_in_several_tasks(case, cuts):
    check(case, cuts, executor=LocalExecutor(spread=True))


def test_a_case_cannot_name_functions(tmp_path):
    tmp_path.joinpath("evil.py").write_text("raise SystemExit('imported')")
    file = tmp_path / "cases.yaml"
    text = (FOLDER / "cases.yaml").read_text().split("\n\n")[1]
    file.write_text(f"{text}\n  config: {{functions: [{tmp_path / 'evil.py'}]}}\n")
    (case,) = load_cases(file, {})
    with pytest.raises(AssertionError, match="a case cannot name functions"):
        check(case, "given", around=Surroundings(variables={}))
    assert f"{tmp_path}/evil.py" not in str(sys.modules)


def test_the_example_of_the_page(tmp_path):
    (code,), (config, cases) = blocks("python", "functions.md"), blocks("yaml", "functions.md")
    tmp_path.joinpath("shop_functions.py").write_text(code)
    tmp_path.joinpath("kaflow.yaml").write_text(config)
    tmp_path.joinpath("cases.yaml").write_text(cases)
    around = Surroundings(config_path=tmp_path / "kaflow.yaml", variables={})
    (case,) = load_cases(tmp_path / "cases.yaml", {})
    check(case, "given", replay=True, around=around)


def test_what_a_function_raises_is_a_dead_letter(tmp_path):
    tmp_path.joinpath("f.py").write_text(FAILING)
    use(Sources(modules=(str(tmp_path / "f.py"),)))
    found = {each.name: each.key for each in known().functions.values()}
    rows = pa.table({"rn": range(40), "n": range(40)})
    for name in ("fails", "fails_at_once", "of_another_type", "no_array"):
        remember(["s3cret-value"])
        got, bad = guarded(f"SELECT rn, {found[name]}(n) AS x FROM rows", rows)
        assert sorted(each.row for each in bad) == [7, 21, 33]
        assert got.num_rows == 37
        assert {each.error for each in bad} == {"FunctionError"}
        assert all(len(each.message) < 300 and "__v" not in each.message for each in bad)
        assert "s3cret-value" not in str(bad)
        assert f"{name}: " in bad[0].message
    for name, one in (("uses_up_memory", rows), ("uses_up_memory_later", rows.slice(3, 2))):
        with pytest.raises(RunError, match="a function of the project stopped: MemoryError"):
            guarded(f"SELECT rn, {found[name]}(n) AS x FROM rows", one)


@pytest.mark.parametrize("text", ["executing the UDF: x", f"{CALLING}x", FAILED])
def test_a_record_that_holds_the_words_of_a_failure_is_a_bad_record(text):
    rows = pa.table({"rn": [0, 1], "t": [text, "1"]})
    got, bad = guarded("SELECT rn, CAST(t AS INTEGER) AS x FROM rows", rows)
    assert got["x"].to_pylist() == [1]
    assert [(each.row, each.error) for each in bad] == [(0, "ConversionError")]


def test_the_functions_of_the_configuration_in_use_are_called(tmp_path):
    for name in ("a", "b"):
        code = f"@function\ndef which_file(n: int) -> str:\n    return '{name}'\n"
        tmp_path.joinpath(f"{name}.py").write_text(f"{IMPORT}\n{code}")
    for name in ("a", "b", "a"):
        use(Sources(modules=(str(tmp_path / f"{name}.py"),)))
        (key,) = (key for key in known().functions if key.startswith("which_file__"))
        assert query(f"SELECT {key}(1) AS x")["x"].to_pylist() == [name]


@pytest.mark.parametrize(
    ("kind", "sql", "seen"),
    [
        ("UBIGINT", "18446744073709551615", "18446744073709551615"),
        ("DECIMAL(30, 3)", "123456789012345678901234567.125", "123456789012345678901234567.125"),
        ("TIMESTAMP WITH TIME ZONE", "'2026-01-01 12:00:00+02'", "2026-01-01 10:00:00+00:00"),
        ("TIME", "'10:20:30.5'", "10:20:30.500000"),
        ("FLOAT", "0.1", "0.10000000149011612"),
        ("INTEGER[2]", "[1, NULL]", "[1, None]"),
        ("STRUCT(a INTEGER, b VARCHAR[])", "{a: 1, b: ['x', NULL]}", "{'a': 1, 'b': ['x', None]}"),
        ("DATE[]", "['2026-02-28']", "[datetime.date(2026, 2, 28)]"),
    ],
)
def test_values_come_and_go_as_they_are(kind, sql, seen, tmp_path):
    code = f"@function(name='same')\ndef f(x: Annotated[object, '{kind}']) -> Annotated[object, "
    code += f"'{kind}']:\n    return x\n@function(name='said')\ndef g(x: Annotated[object, "
    code += f"'{kind}']) -> str:\n    return str(x)\n"
    tmp_path.joinpath("f.py").write_text(f"from typing import Annotated\n{IMPORT}\n{code}")
    use(Sources(modules=(str(tmp_path / "f.py"),)))
    same, said = (function.key for function in found().values() if function.name in NAMES)
    value = f"CAST({sql} AS {kind})"
    (row,) = query(f"SELECT {same}({value}) = {value} AS same, {said}({value}) AS said").to_pylist()
    assert row == {"same": True, "said": seen}


def test_a_package_and_the_project_have_a_function_of_one_name(tmp_path, monkeypatch):
    for module in ("ours_of_test", "theirs_of_test"):
        code = f"{IMPORT}\n@function\ndef twice_here(n: int) -> int:\n    return n\n"
        tmp_path.joinpath(f"{module}.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    entry = SimpleNamespace(module="theirs_of_test")
    monkeypatch.setattr(catalogue, "entry_points", lambda group: [entry])
    catalogue._of_packages.cache_clear()
    try:
        use(Sources(modules=("ours_of_test",)))
        assert catalogue.named("twice_here").call.__module__ == "ours_of_test"
        with pytest.raises(ModelError, match="there are two functions 'twice_here', the other one"):
            catalogue.named("of_neither")
    finally:
        catalogue._of_packages.cache_clear()
        use(Sources())


@pytest.mark.spark
def test_the_cases_on_spark(spark):
    from kaflow_engine.runtime.case_executor import SparkExecutor  # it imports Spark

    table = next(case for case in CASES if case.id == "aggregates over groups of a table")
    for case, spread in zip([*CASES[:3], table], (True, False, False, True), strict=True):
        check(case.values[0], "given", executor=SparkExecutor(spark, spread=spread))
