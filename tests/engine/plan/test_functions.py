"""Python functions in plans: exact words for mistakes, explain, lineage, and evolution."""
# pyright: basic

import json
from pathlib import Path

import pytest
import yaml

from kaflow_engine.duck.functions.catalogue import found, plain, require, with_versions
from kaflow_engine.errors import KaflowError, Location, ModelError, RunError
from kaflow_engine.model.config import Config
from kaflow_engine.model.configuration.load_config import load_config
from kaflow_engine.model.pipelines.loader import load_pipeline, pipeline_from_mapping
from kaflow_engine.plan.evolution.evolution import inherit
from kaflow_engine.plan.evolution.start_decision import judge
from kaflow_engine.plan.explain.draw import draw
from kaflow_engine.plan.explain.explain import explain
from kaflow_engine.plan.planner.functions import functions_called
from kaflow_engine.plan.planner.pipeline_plan import build_plan, check_pipeline, declared_columns
from kaflow_engine.plan.planner.project import check_project
from tests.engine.plan.test_evolution import STORED

FIXTURES = Path(__file__).parents[2] / "fixtures"
SHOP = FIXTURES / "functions" / "shop_functions.py"
AGGREGATES = FIXTURES / "functions" / "shop_aggregates.py"
IMPORTS = """\
from decimal import Decimal
from typing import Annotated
import pyarrow as pa
from kaflow_engine.api.functions import aggregate, function
"""
DICE = """\
from kaflow_engine.api.functions import function
@function(deterministic=False)
def dice(n: int) -> int: ...
"""
COLUMNS = {"id": "VARCHAR", "n": "INTEGER", "d": "DOUBLE", "at": "TIMESTAMP"}


def rows(name):
    file = FIXTURES / "errors" / "functions" / f"{name}.yaml"
    found = yaml.load(file.read_text(), yaml.CSafeLoader)
    return [pytest.param(row, id=row["title"]) for row in found]


@pytest.mark.parametrize(
    ("row", "module"),
    [
        *((*row.values, SHOP) for row in rows("calls")),
        *((*row.values, AGGREGATES) for row in rows("aggregate_calls")),
    ],
    ids=lambda given: given["title"] if isinstance(given, dict) else "",
)
def test_a_wrong_call(row, module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("dice.py").write_text(DICE)
    query = "\n  ".join(row["query"].splitlines())
    topics = f"output: {{topic: o, key: id}}\ntopics: {yaml.safe_dump({'a': {'columns': COLUMNS}})}"
    topics = topics.replace("topics: a:", "topics:\n a:").replace("\n  ", "\n   ")
    if "relations" in row:
        topics += f"relations: {json.dumps(row['relations'])}\n"
    Path("p.yaml").write_text(f"name: p\nquery: |\n  {query}\n{topics}")
    config = Config.model_validate({"functions": [str(module), "dice.py"]})
    with pytest.raises(ModelError) as raised:
        check_pipeline(load_pipeline(Path("p.yaml"), {}), config)
    assert str(raised.value) == row["error"]


@pytest.mark.parametrize("row", [*rows("declarations"), *rows("aggregates")])
def test_a_wrong_declaration(row, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("f.py").write_text(IMPORTS + row.get("code", ""))
    Path("kaflow.yaml").write_text(yaml.safe_dump({"functions": row.get("functions", ["f.py"])}))
    with pytest.raises(ModelError) as raised:
        check_project([], load_config(Path("kaflow.yaml"), {}))
    assert str(raised.value).replace(f"{tmp_path}/", "") == row["error"]


def planned(tmp_path, version, query, result="n * 2", **about):
    """Return a plan that calls a function of a version."""
    file = tmp_path / f"v{version}_{len(list(tmp_path.iterdir()))}.py"
    code = f"@function(version={version})\ndef score(n: int) -> int:\n    return {result}\n"
    file.write_text(IMPORTS + code)
    names = {"columns": {"id": "VARCHAR", "n": "INTEGER"}}
    given = {
        "name": "p",
        "query": query,
        "output": {"topic": "o", "key": "id"},
        "topics": {name: names for name in ("events", "others") if name in query},
        "state": {"dimensions": ["others"] if "others" in query else []},
        "partitions": 2,
        **about,
    }
    at = Location("p.yaml")
    spec = pipeline_from_mapping(given, at)
    config = Config.model_validate({"functions": [str(file)]})
    read = {name: columns for name in spec.topics if (columns := declared_columns(spec, name))}
    return spec, config, build_plan(spec, config, read).plan


@pytest.mark.parametrize(
    ("query", "status", "reason"),
    [
        (
            "SELECT id, score(n) AS s FROM events",
            "kept",
            "output: column 's' is BIGINT score@2(events.n), was BIGINT score@1(events.n)",
        ),
        (
            "SELECT e.id FROM events e LEFT JOIN (SELECT id FROM others WHERE score(n) > 1) o "
            "ON e.id = o.id",
            "rebuild",
            "step 1, side 'others': filter is (score@2(others.n) > 1), was (score@1(others.n) > 1)",
        ),
        (
            "SELECT id, sum(score(n)) AS s FROM events GROUP BY id",
            "rebuild",
            "",
        ),
    ],
)
def test_another_version_is_another_expression(tmp_path, query, status, reason):
    old, same, new = (planned(tmp_path, version, query)[2] for version in (1, 1, 2))
    assert judge(STORED, old, inherit(old, same)).status == "unchanged"
    found = judge(STORED, old, inherit(old, new))
    assert found.status == status, found.reasons
    assert reason in found.reasons or not reason, found.reasons
    assert "__v" not in str(found.reasons)


def test_a_plan_says_which_functions_it_calls(tmp_path):
    query = "SELECT id, score(n) + score(n + 1) AS s FROM events"
    spec, config, plan = planned(tmp_path, 7, query)
    (key,) = functions_called(plan)
    assert key.startswith("score__v7_")
    explained = explain(spec, config)
    (part,) = explained.functions
    assert (part.name, part.signature, part.version) == ("score", "score(BIGINT) -> BIGINT", 7)
    (output,) = explained.outputs
    assert {each.column: each.sources for each in output.lineage}["s"] == (("events", "n"),)
    drawn = "\n".join(draw(explained))
    assert "score(BIGINT) -> BIGINT, version 7" in drawn
    assert "__v7" not in drawn
    assert explained.data()["functions"][0]["version"] == 7


def test_the_filter_is_drawn_as_the_author_wrote_it(tmp_path):
    query = "SELECT id FROM events WHERE score(n) > 1"
    spec, config, _ = planned(tmp_path, 8, query)
    assert "score(events.n) > 1" in "\n".join(draw(explain(spec, config)))


def test_a_plan_runs_only_with_the_version_that_it_was_made_for(tmp_path):
    planned(tmp_path, 9, "SELECT id, score(n) AS s FROM events")
    with pytest.raises(RunError, match="of version 3, and here is version 9: score"):
        require(["score__v3_00000000"])
    with pytest.raises(RunError, match="'gone', and there is none"):
        require(["gone__v3_00000000"])


def test_a_condition_of_a_check_may_call_a_function(tmp_path):
    from kaflow_engine.model.columns import Column
    from kaflow_engine.sql.types.conditions import check_condition, runnable

    planned(tmp_path, 10, "SELECT id, score(n) AS s FROM events")
    check_condition("score(n) > 1", [Column("n", "BIGINT")], None)
    assert runnable("score(n) > 1").lower().startswith("score__v10_")
    with pytest.raises(KaflowError, match=r"score\(\) takes \(BIGINT\), not \(DATE\)"):
        check_condition("score(n) > 1", [Column("n", "DATE")], None)


def test_the_text_of_a_pipeline_is_no_module(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("evil.py").write_text("raise SystemExit('imported')")
    given = {"name": "p", "query": "SELECT evil(id) AS id FROM a", "output": {"topic": "o"}}
    given |= {"topics": {"a": {"columns": {"id": "VARCHAR"}}}}
    with pytest.raises(ModelError, match="unknown function 'evil'"):
        check_pipeline(pipeline_from_mapping(given, Location("p.yaml")), Config())
    with pytest.raises(ModelError, match="functions"):
        pipeline_from_mapping({**given, "functions": ["evil.py"]}, Location("p.yaml"))


def aggregate_plan(tmp_path, version, methods, query="SELECT id, best(n) AS x FROM a GROUP BY id"):
    """Return a plan that calls an aggregate with such methods."""
    file = tmp_path / f"g{version}_{len(list(tmp_path.iterdir()))}.py"
    code = f"@aggregate(version={version})\nclass Best:\n    def empty(self) -> int: return 0\n"
    code += "    def add(self, state: int, value: int) -> int: return max(state, value)\n"
    file.write_text(IMPORTS + code + "".join(f"    {line}\n" for line in methods))
    given = {
        "name": "p",
        "query": query,
        "emission": {"type": "immediate"},
        "topics": {"a": {"columns": {"id": "VARCHAR", "n": "INTEGER"}}},
        "output": {"topic": "o", "key": "id"},
    }
    spec = pipeline_from_mapping(given, Location("p"))
    config = Config.model_validate({"functions": [str(file)]})
    return build_plan(spec, config, {"a": declared_columns(spec, "a") or ()})


MERGE = "def merge(self, one: int, other: int) -> int: return max(one, other)"


def test_an_aggregate_of_another_version_is_another_plan(tmp_path):
    before, same, after = (aggregate_plan(tmp_path, n, [MERGE]).plan for n in (1, 1, 2))
    assert functions_called(before) == functions_called(same)
    assert not set(functions_called(before)) & set(functions_called(after))
    require(functions_called(after))
    with pytest.raises(RunError, match="the function 'best' of version 9, and here is version 2"):
        require(["best__merged__v9_00000000"])


def test_what_a_group_keeps_of_an_aggregate(tmp_path):
    kept = aggregate_plan(tmp_path, 1, []).plan
    merged = aggregate_plan(tmp_path, 1, [MERGE]).plan
    names = [{key.partition("__v")[0] for key in functions_called(p)} for p in (kept, merged)]
    assert names == [{"best"}, {"best__first", "best__merged", "best__result"}]


IMPORTED = """\
from collections import Counter
from math import sqrt
from operator import itemgetter
first = itemgetter(0)
@function
def root_of(x: float) -> float: return sqrt(x)
"""


def test_what_a_module_imports_is_no_aggregate_of_it(tmp_path):
    file = tmp_path / "imports.py"
    file.write_text(IMPORTS + IMPORTED)
    check_project([], Config.model_validate({"functions": [str(file)]}))
    names = [name for name, each in found().items() if each.module.endswith("imports_py")]
    assert names == ["root_of"]


LISTS = """\
@aggregate
class Sums_here:
    def empty(self) -> int: ...
    def add(self, state: int, value: int) -> int: ...
@function
def total_here(values: list[int]) -> int: ...
"""


@pytest.mark.parametrize(
    ("sql", "seen"),
    [
        ("{sums}(ARRAY_AGG(x)) + 1", "sums_here(x) + 1"),
        ("{sums}(ARRAY_AGG(f(x)), 2) + 1", "sums_here(f(x), 2) + 1"),
        ("{total}(ARRAY_AGG(x)) + 1", "total_here(ARRAY_AGG(x)) + 1"),
        ("{total}(ARRAY_AGG({sums}(ARRAY_AGG(x))))", "total_here(ARRAY_AGG(sums_here(x)))"),
        ("{sums}(ARRAY_AGG({total}(ARRAY_AGG(x))))", "sums_here(total_here(ARRAY_AGG(x)))"),
        ("{sums}(ARRAY_AGG(x || ')'), 2)", "sums_here(x || ')', 2)"),
        ("{sums}(ARRAY_AGG(x || 'it''s ('), 2)", "sums_here(x || 'it''s (', 2)"),
        ('{sums}(ARRAY_AGG("a)b")) + 1', 'sums_here("a)b") + 1'),
    ],
)
def test_calls_are_shown_as_their_author_wrote_them(sql, seen, tmp_path):
    tmp_path.joinpath("f.py").write_text(IMPORTS + LISTS)
    check_project([], Config.model_validate({"functions": [str(tmp_path / "f.py")]}))
    here = found()
    sql = sql.format(sums=here["sums_here"].key, total=here["total_here"].key)
    assert plain(sql) == seen
    assert with_versions(sql).replace("@1", "") == seen
