"""Settings of Streamling about plugins: where they are, and what rewrites files."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from kaflow_engine.errors import Location
from kaflow_engine.model.config import Config
from kaflow_engine.model.configuration.streamling.names import plugin_id
from kaflow_engine.model.files.tree import Scalar
from kaflow_engine.plugins.folders import look_in

PATH = "streamling.plugin.path"
PREPROCESSORS = "preprocessor_options"
_IDS, _OPTIONS = ("plugin", "preprocessor_ids"), ("plugin", PREPROCESSORS)


def find_plugins(config: Config) -> None:
    """Let the plugins count as installed that a setting says where to find.

    Raises:
        ModelError: There are none.
    """
    if path := config.vars.get(PATH):
        look_in(Path(path), Location(config.origin("vars", PATH)))


def preprocessors(
    said: Mapping[tuple[str, ...], Scalar],
) -> Iterator[tuple[tuple[str, ...], str, Location]]:
    """Yield our keys for those preprocessors that a setting names, each with where it stands."""
    ids = said.get(_IDS)
    if ids is None or ids.text is None:
        return
    named = [plugin_id(name.strip()) for name in ids.text.split(",") if name.strip()]
    yield ("preprocessors",), ",".join(named), ids.at
    for name, value in said.items():
        if name[:2] == _OPTIONS and len(name) == 4 and plugin_id(name[2]) in named:
            yield ("plugins", plugin_id(name[2]), "settings", name[3]), value.text or "", value.at
