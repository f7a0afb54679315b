"""Sources of packages: what planning says of them, of their options and of their columns."""

from hashlib import sha256
from importlib.metadata import EntryPoint
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest
import yaml
from pydantic import BaseModel, ConfigDict, Field

from kaflow_engine.connectors.pyspark import classes
from kaflow_engine.connectors.sources.plugin_contract import Given
from kaflow_engine.errors import KaflowError
from kaflow_engine.flow.origins.plugins import JournalledPluginParams, PluginParams, PySparkParams
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import load_pipeline
from kaflow_engine.plan.explain.draw import draw
from kaflow_engine.plan.explain.explain import explain
from kaflow_engine.plan.planner.inputs import source_plugins
from kaflow_engine.plan.planner.pipeline_plan import build_plan, check_pipeline, declared_columns
from kaflow_engine.plugins.installed import SINKS, SOURCES
from kaflow_engine.runtime.planning.columns import connection_of_source
from kaflow_engine.runtime.planning.plan_codec import plan_of, plan_text
from tests.conftest import FROZEN_PLUGIN, FROZEN_PLUGIN_2, FROZEN_PLUGIN_3, OfferPlugins

FIXTURES = Path(__file__).parents[2] / "fixtures"
HERE = "tests.engine.plan.test_source_plugins"
FOUND = yaml.safe_load((FIXTURES / "errors" / "source_plugins.yaml").read_text())
ROWS = [pytest.param(row, id=row["title"]) for row in FOUND]
FROZEN = (FROZEN_PLUGIN, FROZEN_PLUGIN_2, FROZEN_PLUGIN_3)
IT_HAD = (
    "986f87b3804e13850cdce2970fbebfc4fc5558ece903bb870e40c74757bc6097",
    "8fd2e7088973075368c8c3c8e792686fce896461114e183668b74181108950f6",
    "74f2a650dab52a1f6a0ec36ff0d0f201fbe42766fd53351fef031627a6375ad3",
)
"""The checksums of the plugins that are never changed."""


class Options(BaseModel):
    model_config = ConfigDict(extra="forbid")

    file: str
    size: int = Field(default=1, gt=0)


class Replayed:
    """A made-up plugin, whose rows can be read again."""

    options = Options
    replays = True

    def bounded(self, options: Options) -> bool:
        return options.size == 2

    def columns(self, options: Options) -> dict[str, str] | None:
        return {"id": "BIGINT", "at": "TIMESTAMPTZ"} if options.file == "known" else None

    def open(self, given: Given) -> object:
        raise NotImplementedError


class Once(Replayed):
    """Another one, whose rows come once."""

    replays = False


class Failing(Replayed):
    def columns(self, options: Options) -> dict[str, str] | None:
        raise ValueError("not today")


class Later(Replayed):
    contract = 4


class Worded(Replayed):
    contract = "1"


class Endless:
    """It does not say whether it has an end."""

    options = Options
    replays = True

    def columns(self, options: Options) -> None:
        return None

    def open(self, given: Given) -> object:
        raise NotImplementedError


class Refusing:
    def __init__(self) -> None:
        raise OSError("no disk")


@pytest.fixture(autouse=True)
def installed(offer_plugins: OfferPlugins, monkeypatch: pytest.MonkeyPatch) -> None:
    named = {
        "acme.orders": "Replayed",
        "acme.once": "Once",
        "acme.failing": "Failing",
        "acme.later": "Later",
        "acme.worded": "Worded",
        "acme.endless": "Endless",
        "acme.refusing": "Refusing",
        "acme.gone": "Gone",
        "acme.other": "Options",
    }
    sources = {name: f"{HERE}:{each}" for name, each in named.items()}
    offer_plugins({SOURCES: sources, SINKS: {"other.tally": "x:y"}})
    fake = EntryPoint(name="fake", value="a.package:Fake", group=classes.GROUP)
    for module in (classes, source_plugins):
        monkeypatch.setattr(module, "installed_formats", lambda: {"fake": fake})


def written(folder: Path, source: str) -> Any:
    file = folder / "p.yaml"
    head = "name: p\nquery: SELECT id FROM s\noutput: {topic: o}\nsources:\n  s:\n"
    file.write_text(head + source)
    return load_pipeline(file, {})


def plan(folder: Path, source: str, config: Config | None = None) -> tuple[Any, Any]:
    spec = written(folder, source)
    columns = declared_columns(spec, "s")
    assert columns is not None
    return spec, build_plan(spec, config or Config(), {"s": columns}).plan


def test_a_plugin_that_reads_again(tmp_path: Path) -> None:
    source = "    type: acme.orders\n    options: {file: known, size: 2}\n"
    spec, flow = plan(tmp_path, source)
    (topic,) = flow.sources
    said = PluginParams(type="acme.orders", bounded=True, options=(("file", "known"), ("size", 2)))
    assert topic.connector == said
    assert topic.columns == (Column("id", "BIGINT"),)
    assert plan_of(plan_text(flow)) == flow
    text = "\n".join(draw(explain(spec, Config(), {})))
    assert "rows of the plugin acme.orders" in text
    assert "journal" not in text


def test_a_plugin_that_reads_once(tmp_path: Path) -> None:
    source = "    type: acme.once\n    options: {file: x}\n    columns: {id: BIGINT}\n"
    spec, flow = plan(tmp_path, source)
    (topic,) = flow.sources
    said = JournalledPluginParams(
        type="acme.once", bounded=False, options=(("file", "x"),), max_backlog=1_000_000
    )
    assert topic.connector == said
    assert plan_of(plan_text(flow)) == flow
    text = " ".join("\n".join(draw(explain(spec, Config(), {}))).split())
    assert "exactly once what is written down" in text


def test_a_data_source_of_pyspark(tmp_path: Path) -> None:
    source = (
        "    type: pyspark:fake\n    options: {numRows: 3, strict: true, none: null}\n"
        "    columns: {id: INT}\n    interval: 5s\n"
    )
    spec, flow = plan(tmp_path, source)
    (topic,) = flow.sources
    said = PySparkParams(
        format="fake",
        options=(("numRows", "3"), ("strict", "true")),
        columns=(Column("id", "INTEGER"),),
        bounded=False,
        interval=5_000,
        max_backlog=1_000_000,
    )
    assert topic.connector == said
    assert plan_of(plan_text(flow)) == flow
    text = "\n".join(draw(explain(spec, Config(), {})))
    assert "rows of pyspark:fake, asked every 5s" in text


def test_the_configuration_says_what_is_secret() -> None:
    settings = {"url": "https://me:word-of-orders@host"}
    config = Config.model_validate(
        {
            "plugins": {
                "acme.orders": {"settings": settings},
                "pyspark:rest": {"module": "a.package", "settings": {"token": "word-of-rest"}},
            }
        }
    )
    own = PluginParams(type="acme.orders", bounded=False, options=())
    assert connection_of_source(config, own) == settings
    rest = PySparkParams(
        format="rest", options=(), columns=(), bounded=False, interval=1, max_backlog=1
    )
    found = connection_of_source(config, rest)
    assert found == {"token": "word-of-rest", classes.MODULE: "a.package"}
    assert "word-of" not in repr(config)


@pytest.mark.parametrize("row", ROWS)
def test_mistakes(tmp_path: Path, row: dict[str, str]) -> None:
    with pytest.raises(KaflowError) as caught:
        check_pipeline(written(tmp_path, indent(row["source"], "    ")))
    assert str(caught.value).replace(f"{tmp_path}/", "") == row["error"].replace("HERE", HERE)


def test_an_option_that_the_configuration_sets_too(tmp_path: Path) -> None:
    config = Config.model_validate(
        {"plugins": {"pyspark:rest": {"module": "a", "settings": {"token": "x"}}}}
    )
    source = "    type: pyspark:rest\n    options: {token: y}\n    columns: {id: INT}\n"
    with pytest.raises(KaflowError) as caught:
        check_pipeline(written(tmp_path, source), config)
    assert str(caught.value).replace(f"{tmp_path}/", "") == (
        "p.yaml:7: option 'token' of 'pyspark:rest' is set in the configuration, too\n"
        "  hint: remove it here, or under plugins.pyspark:rest.settings"
    )


@pytest.mark.parametrize(("folder", "it_had"), [*zip(FROZEN, IT_HAD, strict=True)])
def test_the_plugins_of_earlier_versions_are_never_changed(folder: Path, it_had: str) -> None:
    files = sorted(path for path in folder.rglob("*") if path.suffix in (".py", ".txt"))
    found = sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
    assert found == it_had
