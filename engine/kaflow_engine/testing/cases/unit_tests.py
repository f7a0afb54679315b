"""`unit_tests:` of a property file, as dbt has them → cases."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from kaflow_engine.errors import Location, ModelError, UnknownName
from kaflow_engine.model.dbt.properties import AllProperties, read_properties
from kaflow_engine.model.files.tree import Entries, Entry, Items, Node, Scalar, describe, from_plain
from kaflow_engine.model.files.yaml_file import read_yaml
from kaflow_engine.model.pipelines.front_end import SUFFIXES
from kaflow_engine.model.project import read_project
from kaflow_engine.model.specs import PipelineSpec

UNIT_TESTS = "unit_tests"

_KEYS = ("name", "description", "model", "given", "expect", "config")
_INPUT = re.compile(
    r"\s*(source|ref)\s*\(\s*['\"]([^'\"]+)['\"]\s*(?:,\s*['\"]([^'\"]+)['\"]\s*)?\)\s*"
)
_AT = "2100-01-01T00:00:00Z"
"""Kafka timestamp of all records: none of their event times lies ahead of it."""


def unit_cases(tests: Items, file: Path, variables: Mapping[str, str]) -> Iterator[Entries]:
    """Yield a case for each unit test, as if someone had written it into a case file.

    What is known about dimensions comes first, in a batch of its own. Rows are compared in the
    columns that the test expects.

    Raises:
        ModelError: A test has another form, or reads something that is not there.
    """
    names = _Names(file, variables)
    for test in tests.items:
        yield _case(test, names)


class _Names:
    """The topics behind what a unit test calls its inputs."""

    def __init__(self, file: Path, variables: Mapping[str, str]) -> None:
        parents = [parent for parent in file.absolute().parents if parent.name == "models"]
        folder = parents[-1] if parents else file.absolute().parent
        self._folder, self._variables = folder, variables
        self._properties = _properties(folder, variables)

    def find(self, node: Node) -> tuple[str, bool]:
        """Return the topic of an input, and whether it is a dimension."""
        text = node.text if isinstance(node, Scalar) else None
        found = _INPUT.fullmatch(text or "")
        if found is None:
            raise ModelError(
                f"'input': {describe(node) if text is None else repr(text)} is no topic",
                node.at,
                "write source('name', 'table'), or ref('model')",
            )
        kind, first, second = found.groups()
        if kind == "source":
            table = self._properties.tables.get((first, second or ""))
            if table is None:
                known = [".".join(key) for key in self._properties.tables]
                raise UnknownName("source", f"{first}.{second}", known, node.at)
            return table.called, table.spec.config.dimension
        if first not in self._models:
            raise UnknownName("model", first, self._models, node.at)
        return self._models[first].writes[0].target, False

    @cached_property
    def _models(self) -> Mapping[str, PipelineSpec]:
        project = read_project([self._folder], None, self._variables)
        return {spec.name: spec for spec in project.pipelines}


def _properties(folder: Path, variables: Mapping[str, str]) -> AllProperties:
    files = sorted(path for path in folder.rglob("*") if path.name.endswith(SUFFIXES))
    return read_properties([read_yaml(file, variables) for file in files])


def _case(test: Node, names: _Names) -> Entries:
    if not isinstance(test, Entries):
        raise ModelError(f"expected a unit test, found {describe(test)}", test.at)
    for entry in test.entries:
        if entry.key not in _KEYS:
            raise UnknownName("key", entry.key, _KEYS, entry.at)
    at = test.entries[0].at
    first: list[Node] = []
    later: list[Node] = []
    for given in _items(test, "given"):
        topic, is_dimension = names.find(_needed(given, "input"))
        rows = [_record(topic, row) for row in _items(given, "rows")]
        (first if is_dimension else later).extend(rows)
    cut = [from_plain("batch", at)] if first and later else []
    expected = _items(_needed(test, "expect"), "rows")
    columns = {
        entry.key: None for row in expected if isinstance(row, Entries) for entry in row.entries
    }
    return Entries(
        at=test.at,
        entries=(
            Entry(key="case", at=at, value=_needed(test, "name")),
            Entry(key="pipeline", at=at, value=_needed(test, "model")),
            Entry(key="given", at=at, value=Items(at=at, items=(*first, *cut, *later))),
            Entry(key="bounded", at=at, value=from_plain(True, at)),
            Entry(key="cuts", at=at, value=from_plain("given", at)),
            Entry(key="columns", at=at, value=from_plain(list(columns), at)),
            Entry(
                key="expect",
                at=at,
                value=Items(at=at, items=tuple(_mapping(row.at, value=row) for row in expected)),
            ),
        ),
    )


def _record(topic: str, row: Node) -> Entries:
    return _mapping(row.at, topic=from_plain(topic, row.at), at=from_plain(_AT, row.at), value=row)


def _mapping(where: Location, /, **values: Node) -> Entries:
    entries = (Entry(key=key, at=where, value=value) for key, value in values.items())
    return Entries(at=where, entries=tuple(entries))


def _needed(node: Node, key: str) -> Node:
    found = node.get(key) if isinstance(node, Entries) else None
    if found is None:
        raise ModelError(f"'{key}' is required", node.at, "see unit tests in the documents of dbt")
    return found


def _items(node: Node, key: str) -> Sequence[Node]:
    found = node.get(key) if isinstance(node, Entries) else None
    if found is None:
        return ()
    if not isinstance(found, Items):
        raise ModelError(f"'{key}': expected a list, found {describe(found)}", found.at)
    return found.items
