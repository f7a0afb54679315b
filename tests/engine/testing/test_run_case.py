"""What a case compares, and what is said when it fails."""

from pathlib import Path

import pytest

from kaflow_engine.errors import UnknownName
from kaflow_engine.testing.cases.cases import CaseResult, run_case
from kaflow_engine.testing.cases.compare import Outcome, compare
from kaflow_engine.testing.cases.executor import EXECUTORS, LocalExecutor, executor_called
from kaflow_engine.testing.cases.files import load_cases
from kaflow_engine.testing.cases.pipeline import Surroundings
from kaflow_engine.testing.cases.report import report_lines, result_data
from kaflow_engine.testing.cases.specs import Row

FILTER = "{name: f, query: 'SELECT id, n FROM a WHERE n > 1', output: {topic: out, key: id}}"
CASE = """\
- case: big numbers pass
  pipeline: %(pipeline)s
  topics: {a: {id: VARCHAR, n: BIGINT}}
  given:
    - {topic: a, at: 0, value: {id: x, n: 1}}
    - {topic: a, at: 1, value: {id: x, n: 2}}
    - batch
    - {topic: a, at: 2, value: {id: x, n: 3}}
    - {topic: a, at: 3, raw: "{"}
%(expect)s
"""


def run(folder: Path, expect: str, pipeline: str = FILTER) -> CaseResult:
    path = folder / "cases.yaml"
    path.write_text(CASE % {"pipeline": pipeline, "expect": expect})
    (case,) = load_cases(path, {})
    return run_case(case, LocalExecutor(), around=Surroundings(variables={}))


GOOD = """\
  expect:
    - {key: x, in_batch: 1, value: {id: x, n: 2}}
    - {topic: out, key: x, in_batch: 2, value: {n: 3, id: x}}
  expect_table: [{key: x, value: {id: x, n: 3}}]
  expect_raw: ['{"id":"x","n":2}', '{"id":"x","n":3}']
  expect_dead_letters: [{topic: a, partition: 0, offset: 3, phase: decode}]
  expect_counters: {read: 4, filtered: 1, dead_letter: 1, waiting: 0}
"""


def test_a_case_that_holds(tmp_path: Path) -> None:
    result = run(tmp_path, GOOD)
    assert result.passed, report_lines(result)
    assert result.runs == 1


def test_a_case_that_differs_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(
        Path(),
        """\
  expect:
    - {key: x, value: {id: x, n: 3}}
    - {key: y, value: {id: y, n: 2}}
  expect_table: [{topic: out, key: x, value: {id: x, n: 2}}, {key: y, value: {n: 1}}]
  expect_raw: ['{"id":"x","n":2}', '{"id":"x","n":4}']
  expect_dead_letters: [{topic: a, offset: 2, phase: decode}]
  expect_counters: {read: 4, filtered: 2}
""",
    )
    assert not result.passed
    assert report_lines(result, 87) == [
        "FAILED  big numbers pass",
        "        cases.yaml:1",
        "",
        "  rows",
        "    expected                                 | actual",
        '  +                                          | out x {"id":"x","n":2}',
        '  = out x {"id":"x","n":3}                   | out x {"id":"x","n":3}',
        '  - out y {"id":"y","n":2}',
        "",
        "  values",
        "    expected                                 | actual",
        '  = {"id":"x","n":2}                         | {"id":"x","n":2}',
        '  ≠ {"id":"x","n":4}                         | {"id":"x","n":3}',
        "",
        "  tables",
        "    expected                                 | actual",
        '  ≠ out x {"id":"x","n":2}                   | out x {"id":"x","n":3}',
        '  - out y {"n":1}',
        "",
        "  dead letters",
        "    expected                                 | actual",
        "  - a@2 decode",
        "  +                                          | a[0]@3 decode",
        "",
        "  counters",
        "    expected                                 | actual",
        "  = read: 4                                  | read: 4",
        "  ≠ filtered: 2                              | filtered: 1",
    ]
    assert result_data(result)["differences"][4] == {
        "part": "counters",
        "rows": [
            {"expected": "read: 4", "actual": "read: 4", "equal": True},
            {"expected": "filtered: 2", "actual": "filtered: 1", "equal": False},
        ],
    }


def test_the_order_of_a_key_counts(tmp_path: Path) -> None:
    rows = "[{key: x, value: {id: x, n: 3}}, {key: x, value: {id: x, n: 2}}]"
    assert not run(tmp_path, f"  expect: {rows}").passed


def test_a_batch_that_is_named_counts(tmp_path: Path) -> None:
    result = run(tmp_path, GOOD.replace("in_batch: 2", "in_batch: 1"))
    assert [d.part for d in result.differences] == ["rows"]
    assert "out x (batch 2)" in "\n".join(report_lines(result))


@pytest.mark.parametrize(
    ("pipeline", "expect", "error"),
    [
        ("{name: f}", "  expect: []", "'query' is required"),
        ("{name: f}", "  expect_error: quarry", "expected an error like 'quarry', got\n"),
        (FILTER, "  expect_error: x", "expected an error like 'x', got none"),
        (FILTER.replace("FROM a", "FROM b"), "  expect: []", "columns of topic 'b' are not known"),
        ("nowhere.yaml", "  expect: []", "nowhere.yaml: no such file"),
        ("[a]", "  expect: []", "expected a pipeline, found a list"),
    ],
)
def test_a_case_that_cannot_be_run(tmp_path: Path, pipeline: str, expect: str, error: str) -> None:
    result = run(tmp_path, expect, pipeline)
    assert not result.passed
    assert error in str(result.error)


def test_an_expected_error(tmp_path: Path) -> None:
    assert run(tmp_path, "  expect_error: que.y", "{name: f}").passed


def test_a_topic_that_the_pipeline_does_not_read(tmp_path: Path) -> None:
    path = tmp_path / "cases.yaml"
    text = CASE.replace("topic: a, at: 2", "topic: aa, at: 2")
    path.write_text(text % {"pipeline": FILTER, "expect": "  expect: []"})
    (case,) = load_cases(path, {})
    result = run_case(case, LocalExecutor(), around=Surroundings(variables={}))
    assert result.error == f"{path}:8: unknown topic 'aa'\n  hint: did you mean 'a'?"


def test_pipelines_by_name(tmp_path: Path) -> None:
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "some.yaml").write_text(
        "name: f\nquery: SELECT id, n FROM a WHERE n > 1\noutput: {topic: out, key: id}\n"
    )
    (tmp_path / "pipelines" / "broken.yaml").write_text("name: [")
    tests = tmp_path / "tests" / "deep"
    tests.mkdir(parents=True)
    assert run(tests, GOOD, "f").passed
    result = run(tests, GOOD, "ff")
    assert str(result.error).endswith(
        "cases.yaml:2: unknown pipeline 'ff'\n  hint: did you mean 'f'?"
    )


def test_executors() -> None:
    assert set(EXECUTORS) == {"local", "spark"}
    assert isinstance(executor_called("local"), LocalExecutor)
    with pytest.raises(UnknownName, match="unknown executor 'lcal'"):
        executor_called("lcal")


SEVERAL = """{name: f, outputs: [{from: a, topic: out}, {query: 'SELECT n FROM a', table: kept}]}"""
UNCLEAR = [
    ("{key: x, value: {n: 1}}", "row 1 of %s names none of several outputs\n  hint: write topic: "),
    ("{topic: kep, key: x, value: {n: 1}}", "unknown output 'kep'\n  hint: did you mean 'kept'?"),
]


@pytest.mark.parametrize(("row", "said"), UNCLEAR)
@pytest.mark.parametrize("part", ["expect", "expect_table"])
def test_a_row_of_several_outputs_names_one(tmp_path: Path, part: str, row: str, said: str) -> None:
    result = run(tmp_path, f"  {part}: [{row}]\n", SEVERAL)
    assert said.replace("%s", part) in str(result.error)


DELETED = (
    Row(topic="out", key="x", value={"n": 1}, batch=1),
    Row(topic="out", key="y", value={"n": 1}, batch=1),
    Row(topic="out", key="x", value=None, batch=2),
    Row(topic="out", key=None, value={"n": 1}, batch=2),
)


@pytest.mark.parametrize(
    ("expect", "holds"),
    [
        ("expect_table: [{key: y, value: {n: 1}}]", True),
        ("expect_table: [{key: x, value: {n: 1}}, {key: y, value: {n: 1}}]", False),
        ("expect_table: []", False),
        ("expect: [{value: {n: 1}}, {key: x, value: {n: 1}}, {key: x, value: null}, "
         "{key: y, value: {n: 1}}]", True),
        ("expect: [{value: {n: 1}}, {key: x, value: null}, {key: x, value: {n: 1}}, "
         "{key: y, value: {n: 1}}]", False),
        ("""expect_raw: ['{"n":1}', '{"n":1}', 'null', '{"n":1}']""", True),
    ],
)  # fmt: skip
def test_what_a_null_value_deletes(tmp_path: Path, expect: str, holds: bool) -> None:
    path = tmp_path / "cases.yaml"
    path.write_text(CASE % {"pipeline": FILTER, "expect": f"  {expect}"})
    (case,) = load_cases(path, {})
    raw = tuple(None if row.value is None else b'{"n":1}' for row in DELETED)
    outcome = Outcome(outputs=("out",), rows=DELETED, raw=raw, letters=(), counters={})
    assert (compare(case, outcome, as_given=True, keeps_order=True) == []) == holds
