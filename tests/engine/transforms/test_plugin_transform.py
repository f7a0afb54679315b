"""Transforms of packages: what planning says of them, and what becomes of rows."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from pydantic import BaseModel, ConfigDict, Field

from kaflow_engine.api.transforms import GivenTransform, NewRows, TransformAway, TransformUnfit
from kaflow_engine.errors import KaflowError
from kaflow_engine.flow.transforms import PluginTransformParams, Transform
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import load_pipeline
from kaflow_engine.operators.transform.contract import TransformBatch, Transformed
from kaflow_engine.plan.explain.draw import draw
from kaflow_engine.plan.explain.explain import explain
from kaflow_engine.plan.planner.pipeline_plan import build_plan, check_pipeline, declared_columns
from kaflow_engine.plugins.installed import SOURCES, TRANSFORMS
from kaflow_engine.runtime.planning.plan_codec import plan_of, plan_text
from kaflow_engine.state.answers import NO_ANSWERS
from kaflow_engine.transforms.plugin.kind import PluginTransformKind
from tests.conftest import OfferPlugins

FIXTURES = Path(__file__).parents[2] / "fixtures"
HERE = "tests.engine.transforms.test_plugin_transform"
FOUND = yaml.safe_load((FIXTURES / "errors" / "transform_plugins.yaml").read_text())
ROWS = [pytest.param(row, id=row["title"]) for row in FOUND]
SETTINGS = {("acme.marked", ""): {"suffix": "!"}}


class Options(BaseModel):
    model_config = ConfigDict(extra="forbid")

    mark: str
    every: int = Field(default=1, gt=0)
    removes: str | None = None


class Marked:
    """Marks rows by their names: some go, some become two, and on some it fails."""

    contract = 1
    options = Options

    def columns(self, options: Options) -> Mapping[str, str | None]:
        removed = {} if options.removes is None else {options.removes: None}
        return {"mark": "VARCHAR", **removed}

    def open(self, given: GivenTransform) -> "Marks":
        return Marks(given)


class Marks:
    calls: list[int] = []  # noqa: RUF012

    def __init__(self, given: GivenTransform) -> None:
        self.given = given
        self.mark = Options.model_validate(given.options).mark

    def __call__(self, rows: pa.Table) -> NewRows:
        Marks.calls.append(rows.num_rows)
        names: list[str] = rows["name"].to_pylist()
        for name in names:
            if name in RAISED:
                raise RAISED[name]
        if names[0] in BROKEN:
            return BROKEN[names[0]]
        failures = {at: "it is bad" for at, name in enumerate(names) if name == "bad"}
        made = [at for at, name in enumerate(names) for _ in range(COPIES.get(name, 1))]
        text = self.mark + self.given.settings.get("suffix", "")
        marks = pa.array([text] * len(made), pa.string())
        return NewRows(
            rows=rows.take(made).append_column("mark", marks), of=made, failures=failures
        )


class Nothing(BaseModel):
    pass


class Failing(Marked):
    options = Nothing

    def columns(self, options: Any) -> Mapping[str, str | None]:
        raise ValueError("not today")


COPIES = {"bad": 0, "gone": 0, "twice": 2}
RAISED: dict[str, Exception] = {
    "broken": ValueError("broken"),
    "away": ConnectionError("refused"),
    "unfit": TransformUnfit("the key is wrong"),
}
_ONE = pa.table({"id": [1], "name": ["a"], "mark": ["m"]})
BROKEN: dict[str, NewRows] = {
    "no column": NewRows(rows=_ONE.drop_columns(["mark"])),
    "too few": NewRows(rows=_ONE.slice(0, 0)),
    "elsewhere": NewRows(rows=_ONE, of=[1]),
    "counted": NewRows(rows=_ONE, of=[0, 0]),
    "down": NewRows(rows=pa.concat_tables([_ONE, _ONE]), of=[0, -1]),
    "both": NewRows(rows=_ONE, failures={0: "it fails, too"}),
}


@pytest.fixture(autouse=True)
def installed(offer_plugins: OfferPlugins, monkeypatch: pytest.MonkeyPatch) -> None:
    classes = {"marked": "Marked", "failing": "Failing", "other": "Nothing"}
    here = {f"acme.{name}": f"{HERE}:{each}" for name, each in classes.items()}
    offer_plugins({TRANSFORMS: here, SOURCES: {"zig.zag": "x:y"}})
    monkeypatch.setattr(Marks, "calls", [])


def written(folder: Path, relation: Mapping[str, Any]) -> Any:
    file = folder / "p.yaml"
    said = {"from": "orders", **relation}
    lines = (
        f"    {key}: {yaml.safe_dump(each, default_flow_style=True).split(chr(10))[0]}\n"
        for key, each in said.items()
    )
    file.write_text(
        "name: p\nquery: SELECT id FROM r\noutput: {topic: o}\nrelations:\n  r:\n"
        + "".join(lines)
        + "topics: {orders: {columns: {id: BIGINT, name: VARCHAR}}}\n"
    )
    return load_pipeline(file, {})


@pytest.mark.parametrize("row", ROWS)
def test_mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: dict[str, Any]) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(KaflowError) as caught:
        check_pipeline(written(Path(), row["relation"]), Config())
    assert str(caught.value) == row["error"].replace("HERE", HERE)


def test_a_plan_names_it(tmp_path: Path) -> None:
    relation = {"type": "acme.marked", "options": {"mark": "m", "every": 2}}
    spec = written(tmp_path, relation)
    columns = declared_columns(spec, "orders")
    assert columns is not None
    flow = build_plan(spec, Config(), {"orders": columns}).plan
    (transform,) = (each for each in flow.operators if isinstance(each, Transform))
    said = PluginTransformParams(plugin="acme.marked", options=(("every", 2), ("mark", "m")))
    assert transform.params == said
    assert transform.results == (
        Column("id", "BIGINT"),
        Column("name", "VARCHAR"),
        Column("mark", "VARCHAR"),
    )
    assert plan_of(plan_text(flow)) == flow
    assert "r: acme.marked, every: 2, mark: m" in "\n".join(draw(explain(spec, Config(), {})))


def transformed(names: Sequence[str]) -> Transformed:
    columns = (Column("id", "BIGINT"), Column("name", "VARCHAR"))
    transform = Transform(
        id="transform:s",
        inputs=("group:s",),
        alias="s",
        name="s",
        columns=columns,
        passed=(),
        results=(*columns, Column("mark", "VARCHAR")),
        params=PluginTransformParams(plugin="acme.marked", options=(("mark", "m"),)),
    )
    batch = TransformBatch(
        batch=1,
        batch_time=0,
        mark="",
        identities=lambda: pa.table({}),
        answers=NO_ANSWERS,
        connection=lambda kind, name: SETTINGS.get((kind, name), {}),
    )
    rows = pa.table(
        {"id": pa.array(range(len(names)), pa.int64()), "name": pa.array(names, pa.string())}
    )
    return PluginTransformKind().open(transform)(rows, batch)


def test_rows_go_stay_become_several_and_fail() -> None:
    made = transformed(["a", "gone", "twice", "bad"])
    assert made.rows.to_pylist() == [
        {"id": 0, "name": "a", "mark": "m!"},
        {"id": 2, "name": "twice", "mark": "m!"},
        {"id": 2, "name": "twice", "mark": "m!"},
    ]
    assert made.origin.to_pylist() == [0, 2, 2]
    assert [(e.row, e.error, e.message) for e in made.failures] == [(3, "PluginError", "it is bad")]


def test_rows_on_which_it_raises_are_found() -> None:
    names = ["a"] * 9 + ["broken", "twice", "bad"] + ["a"] * 20 + ["broken"]
    made = transformed(names)
    assert made.origin.to_pylist() == [*range(9), 10, 10, *range(12, 32)]
    assert made.rows["id"].to_pylist() == made.origin.to_pylist()
    assert [(e.row, e.message) for e in made.failures] == [
        (9, "ValueError: broken"),
        (11, "it is bad"),
        (32, "ValueError: broken"),
    ]
    assert len(Marks.calls) < len(names)


def test_it_is_not_called_for_nothing() -> None:
    made = transformed([])
    assert (made.rows.column_names, made.rows.num_rows) == (["id", "name", "mark"], 0)
    assert Marks.calls == []


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        ("away", TransformAway, "plugin 'acme.marked' of 's' failed: ConnectionError: refused"),
        ("unfit", TransformUnfit, "the key is wrong"),
        ("no column", TransformUnfit, "plugin 'acme.marked' of 's' gives no column 'mark'"),
        (
            "too few",
            TransformUnfit,
            "plugin 'acme.marked' of 's' makes 0 rows of 1, and does not say of which",
        ),
        (
            "elsewhere",
            TransformUnfit,
            "plugin 'acme.marked' of 's' names places that do not ascend from 0 to 0",
        ),
        (
            "counted",
            TransformUnfit,
            "plugin 'acme.marked' of 's' gives 1 rows, and says of 2 what of",
        ),
        (
            "down",
            TransformUnfit,
            "plugin 'acme.marked' of 's' names places that do not ascend from 0 to 0",
        ),
        (
            "both",
            TransformUnfit,
            "plugin 'acme.marked' of 's' fails on a row that it was not given, or of which it "
            "makes one",
        ),
    ],
)
def test_what_ends_a_batch(name: str, kind: type[KaflowError], text: str) -> None:
    with pytest.raises(kind) as caught:
        transformed([name])
    assert caught.value.message == text
