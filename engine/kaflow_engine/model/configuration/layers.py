"""The layers of the configuration as trees."""

from collections.abc import Mapping, Sequence
from functools import reduce

from kaflow_engine.errors import Location
from kaflow_engine.model.config import Config
from kaflow_engine.model.files.shapes import Inside, file_keys, inside
from kaflow_engine.model.files.tree import Entries, Entry, Node, Scalar, from_plain, lay_over
from kaflow_engine.model.files.variables import SETTINGS

COMMAND_LINE = Location("command line")


def environment_tree(environment: Mapping[str, str], prefix: str = SETTINGS) -> Node:
    """Read the settings `KAFLOW__A__B`, or of another prefix; an empty one counts as not set.

    Names do not tell case or `_` apart. Below a mapping of free names, `_` stands for `.`:
    `KAFLOW__KAFKA__PROPERTIES__SECURITY_PROTOCOL` sets `security.protocol`.
    """
    layers: list[Node] = []
    for name in sorted(environment):
        if not name.upper().startswith(prefix):
            continue
        at = Location(f"environment {name}")
        path = _path(name[len(prefix) :].split("__"))
        text = environment[name]
        value = Scalar(at=at, text=text or None, written=text, value=text)
        layers.append(_nested(path, value, at))
    return reduce(lay_over, layers, Entries(at=Location("environment"), entries=()))


def overrides_tree(overrides: Mapping[str, object]) -> Node:
    """Read settings given as nested mappings, or under dotted names such as `state.ttl`."""
    layers = [
        _nested(_dotted(name), from_plain(value, COMMAND_LINE), COMMAND_LINE)
        for name, value in overrides.items()
    ]
    return reduce(lay_over, layers, Entries(at=COMMAND_LINE, entries=()))


def _nested(path: Sequence[str], value: Node, at: Location) -> Node:
    for key in reversed(path):
        value = Entries(at=at, entries=(Entry(key=key, at=at, value=value),))
    return value


def _path(parts: Sequence[str]) -> list[str]:
    within, path = Inside(spec=Config), list[str]()
    for index, part in enumerate(parts):
        if within.values is not None and within.values.spec is not None:
            path.append(part if any(letter.islower() for letter in part) else part.lower())
            within = within.values
            continue
        if within.values is not None:
            return [*path, _free_name("_".join(parts[index:]))]
        found = {_squeeze(key): names for key, names in _keys(within).items()}.get(_squeeze(part))
        if found is None:
            return [*path, *(rest.lower() for rest in parts[index:])]
        path.append(found[0])
        within = _below(within, found[1])
    return path


def _dotted(name: str) -> list[str]:
    parts = name.split(".")
    within, path = Inside(spec=Config), list[str]()
    for index, part in enumerate(parts):
        if within.values is not None and within.values.spec is not None:
            path.append(part)
            within = within.values
            continue
        if within.values is not None:
            return [*path, ".".join(parts[index:])]
        path.append(part)
        found = _keys(within).get(part)
        within = _below(within, found[1]) if found else Inside()
    return path


def _keys(within: Inside) -> Mapping[str, tuple[str, str]]:
    return file_keys(within.spec) if within.spec else {}


def _below(within: Inside, field: str) -> Inside:
    return inside(within.spec.model_fields[field].annotation) if within.spec else Inside()


def _squeeze(name: str) -> str:
    return name.replace("_", "").lower()


def _free_name(text: str) -> str:
    name = text if any(letter.islower() for letter in text) else text.lower()
    return name.replace("_", ".")
