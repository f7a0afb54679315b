"""Kinds of sinks that packages offer: what planning says of them and of their options."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from kaflow_engine.connectors.blackhole.sink import Blackhole
from kaflow_engine.connectors.contract import Capabilities
from kaflow_engine.connectors.sinks import sink_kind
from kaflow_engine.errors import KaflowError
from kaflow_engine.flow.sinks import ConnectorSink
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import load_pipeline
from kaflow_engine.plan.explain.draw import draw
from kaflow_engine.plan.explain.explain import explain
from kaflow_engine.plan.planner.pipeline_plan import build_plan
from kaflow_engine.plugins.installed import SINKS
from kaflow_engine.runtime.sink.opening import connections_of
from tests.conftest import OfferPlugins

HERE = "tests.engine.plan.test_plugins"


class Options(BaseModel):
    model_config = ConfigDict(extra="forbid")

    file: str
    size: int = Field(default=1, gt=0)


class Tally(Blackhole):
    """A made-up plugin, which takes rows that stay."""

    options = Options

    def capabilities(self, delivery: Any, settings: Any) -> Capabilities:
        return Capabilities(
            accepts=frozenset({"append"}),
            commit="task",
            guarantee="at_least_once",
            reason="it counts",
            ordered=False,
        )


class Refusing:
    def __init__(self) -> None:
        raise OSError("no disk")


@pytest.fixture(autouse=True)
def installed(offer_plugins: OfferPlugins) -> None:
    classes = {"tally": "Tally", "gone": "Gone", "refusing": "Refusing", "other": "Blackhole"}
    offer_plugins({SINKS: {f"acme.{name}": f"{HERE}:{each}" for name, each in classes.items()}})


def plan(tmp_path: Path, output: str, select: str = "SELECT id FROM orders") -> Any:
    file = tmp_path / "p.yaml"
    file.write_text(
        f"name: p\nquery: {select}\noutput:\n{output}"
        "topics: {orders: {columns: {id: BIGINT, k: VARCHAR}}}\n"
    )
    spec = load_pipeline(file, {})
    columns = (Column("id", "BIGINT"), Column("k", "VARCHAR"))
    return spec, build_plan(spec, Config(), {"orders": columns}).plan


def test_a_plugin_is_planned_with_its_options(tmp_path: Path) -> None:
    spec, flow = plan(tmp_path, "  type: acme.tally\n  name: a\n  options: {file: x, size: 3}\n")
    (sink,) = flow.sinks
    assert isinstance(sink, ConnectorSink)
    assert (sink.kind, sink.target) == ("acme.tally", "acme.tally:a")
    assert dict(sink.settings) == {"file": "x", "size": 3}
    assert isinstance(sink_kind("acme.tally"), Tally)
    text = "\n".join(draw(explain(spec, Config(), {})))
    assert "at least once: it counts" in text
    assert "acme.tally" in text


def test_the_configuration_says_where_it_connects_to() -> None:
    settings = {"url": "https://me:word-of-tally@host"}
    config = Config.model_validate({"plugins": {"acme.tally": {"settings": settings}}})
    assert connections_of(config).of("acme.tally", None) == settings
    assert "word-of-tally" not in repr(config)


@pytest.mark.parametrize(
    ("output", "select", "error"),
    [
        (
            "  type: acme.taly\n",
            None,
            "p.yaml:4: unknown plugin 'acme.taly'\n  hint: did you mean 'acme.tally'?",
        ),
        (
            "  type: other.plugin\n",
            None,
            "p.yaml:4: unknown plugin 'other.plugin'\n  hint: install its package, which has an "
            "entry point of 'kaflow.sinks'; installed are: acme.gone, acme.other, acme.refusing, "
            "acme.tally",
        ),
        (
            "  type: Acme.Tally\n",
            None,
            "p.yaml:4: 'Acme.Tally' is not the name of a plugin\n"
            "  hint: write <namespace>.<name> in small letters, such as acme.tally",
        ),
        (
            "  type: acme.gone\n",
            None,
            f"p.yaml:4: plugin 'acme.gone' ({HERE}:Gone) cannot be loaded: AttributeError: module "
            f"'{HERE}' has no attribute 'Gone'\n"
            "  hint: an entry point names a class that is made without arguments",
        ),
        (
            "  type: acme.refusing\n",
            None,
            f"p.yaml:4: plugin 'acme.refusing' ({HERE}:Refusing) cannot be loaded: OSError: no "
            "disk\n  hint: an entry point names a class that is made without arguments",
        ),
        (
            "  type: acme.other\n",
            None,
            f"p.yaml:4: plugin 'acme.other' ({HERE}:Blackhole) is no kind of sink: it lacks "
            "'options'\n  hint: see PluginKind and SinkKind of kaflow_engine.api.sinks",
        ),
        (
            "  type: acme.tally\n  options:\n    fil: x\n    size: 0\n",
            None,
            "p.yaml:5: 'acme.tally' needs the option 'file'\n"
            "p.yaml:6: unknown option 'fil'\n  hint: did you mean 'file'?\n"
            "p.yaml:7: option 'size' of 'acme.tally': input should be greater than 0",
        ),
        (
            "  type: acme.tally\n  options: {file: x, connection: y}\n",
            None,
            "p.yaml:5: 'output.options' cannot hold 'connection'\n"
            "  hint: remove it: `plugins` in the configuration says where a plugin connects to",
        ),
        (
            "  type: acme.tally\n  options: {file: x}\n",
            "SELECT k, count(*) AS n FROM orders GROUP BY k",
            "p.yaml:4: 'acme.tally' takes rows that stay, and these are rows of a table, which "
            "change and go\n  hint: write them to a topic, which is then compacted",
        ),
    ],
)
def test_mistakes(tmp_path: Path, output: str, select: str | None, error: str) -> None:
    with pytest.raises(KaflowError) as caught:
        plan(tmp_path, output, select or "SELECT id FROM orders")
    assert str(caught.value).replace(f"{tmp_path}/", "") == error
