"""Case files → cases: strict, every mistake of a file at once, at its line."""

import base64
import binascii
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.model.files.reading import build, check_keys
from kaflow_engine.model.files.shapes import Shape
from kaflow_engine.model.files.tree import Entries, Entry, Items, Node, Scalar, describe
from kaflow_engine.model.files.variables import variables_of_authors
from kaflow_engine.model.files.yaml_file import raise_all, read_yaml
from kaflow_engine.model.pipelines.front_end import SUFFIXES
from kaflow_engine.model.spec import Spec
from kaflow_engine.testing.cases.specs import (
    Advance,
    AdvanceSpec,
    Case,
    CaseSpec,
    Cut,
    Given,
    GivenSpec,
    Item,
    LastSpec,
    Letter,
    LetterSpec,
    RowSpec,
)
from kaflow_engine.testing.cases.unit_tests import UNIT_TESTS, unit_cases
from kaflow_engine.testing.cases.values import Json, json_of, json_text

APART = ("pipeline", "config", "given", "expect", "expect_table", "expect_dead_letters")
"""Keys of a case that are read on their own."""

SHAPE = Shape(noun="key", later={}, free=frozenset({("value",), *((key,) for key in APART)}))

S = TypeVar("S", bound=Spec)
R = TypeVar("R", RowSpec, LastSpec)


def find_cases(paths: Sequence[Path]) -> tuple[Path, ...]:
    """Return the case files among files and below folders.

    Raises:
        ModelError: A path does not exist, or holds no case file.
    """
    found: dict[Path, Path] = {}
    wrong: list[ModelError] = []
    for path in paths:
        files = [path] if not path.is_dir() else [file for file in _yaml(path) if holds_cases(file)]
        if not files:
            hint = "a case file is a YAML list whose items begin with case: …"
            wrong.append(ModelError("no case file in this folder", Location(str(path)), hint))
        for file in files:
            found.setdefault(file.resolve(), file)
    raise_all(wrong)
    return tuple(found.values())


def holds_cases(file: Path) -> bool:
    """Tell whether a file looks like it holds cases, or unit tests of models.

    A case file is a list whose first item has a key `case`.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    if re.search(rf"^{UNIT_TESTS}:", text, re.MULTILINE):
        return True
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    first = next((line for line in lines if line.strip() != "---"), "")
    return first.lstrip().startswith(("- ", "-\t")) and re.search(r"\bcase:", text) is not None


def load_cases(file: Path, variables: Mapping[str, str] | None = None) -> tuple[Case, ...]:
    """Read a case file.

    Args:
        file: The file.
        variables: Values for `${VAR}`; None: those of authors.

    Raises:
        ModelError: It cannot be read, or holds a mistake.
        Problems: It holds several.
    """
    known = variables_of_authors() if variables is None else variables
    document = read_yaml(file, known)
    tests = document.root.get(UNIT_TESTS) if isinstance(document.root, Entries) else None
    if isinstance(tests, Items):
        document = replace(document, root=_unit_cases(tests, file, known))
    if not isinstance(document.root, Items):
        raise_all(document.mistakes)
        message = f"expected a list of cases, found {describe(document.root)}"
        raise ModelError(message, document.root.at, "a case begins with - case: …")
    mistakes = list(document.mistakes)
    cases = [_Reader(node, mistakes).case() for node in document.root.items]
    raise_all(mistakes)
    return tuple(case for case in cases if case is not None)


def _unit_cases(tests: Items, file: Path, variables: Mapping[str, str]) -> Items:
    return Items(at=tests.at, items=tuple(unit_cases(tests, file, variables)))


def _yaml(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(parent) / name for name in sorted(names) if name.endswith(SUFFIXES))


class _Reader:
    """Reads one case; what is wrong goes to `mistakes`."""

    def __init__(self, node: Node, mistakes: list[ModelError]) -> None:
        self.node = node
        self.mistakes = mistakes
        self.offsets: Counter[tuple[str, int]] = Counter()

    def case(self) -> Case | None:
        node = self.node
        if not isinstance(node, Entries):
            self.refuse(f"expected a case, found {describe(node)}", node.at, "- case: what it says")
            return None
        apart = {entry.key: entry for entry in node.entries if entry.key in APART}
        spec = self.spec(node, CaseSpec)
        items = [item for part in self.items(apart, "given") if (item := self.item(part))]
        rows = [row for part in self.items(apart, "expect") if (row := self.row(part, RowSpec))]
        table = self.table(self.items(apart, "expect_table"))
        letters = [self.spec(part, LetterSpec) for part in self.items(apart, "expect_dead_letters")]
        expects = {entry.key for entry in node.entries if entry.key.startswith("expect")}
        self.check_expectations(expects, node.at)
        if spec is None:
            return None
        self.check_pattern(spec, node)
        return Case(
            spec=spec,
            at=node.entries[0].at,
            pipeline=apart["pipeline"].value,
            topics_at=_places(node.get("topics")),
            config=node.get("config"),
            items=tuple(items),
            expect=tuple(row for row, _ in rows) if "expect" in apart else None,
            values=tuple(value for _, value in rows),
            table=table if "expect_table" in apart else None,
            letters=tuple(
                Letter(topic=x.topic, partition=x.partition, offset=x.offset, phase=x.phase)
                for x in letters
                if x is not None
            )
            if "expect_dead_letters" in apart
            else None,
        )

    def check_expectations(self, expects: set[str], at: Location) -> None:
        if not expects:
            self.refuse("the case expects nothing", at, "add expect: with the records it emits")
        if "expect_error" in expects and len(expects) > 1:
            others = ", ".join(sorted(expects - {"expect_error"}))
            self.refuse("a case with expect_error emits nothing", at, f"remove {others}")

    def check_pattern(self, spec: CaseSpec, node: Entries) -> None:
        try:
            re.compile(spec.expect_error or "")
        except re.error as error:
            pattern = node.get("expect_error")
            message = f"expect_error is not a regular expression: {error.msg}"
            self.refuse(message, pattern.at if pattern else node.at)

    def items(self, apart: Mapping[str, Entry], key: str) -> Sequence[Node]:
        entry = apart.get(key)
        if entry is None:
            return ()
        if isinstance(entry.value, Items):
            return entry.value.items
        self.refuse(f"'{key}': expected a list, found {describe(entry.value)}", entry.at)
        return ()

    def item(self, node: Node) -> Item | None:
        match node:
            case Scalar(text="batch"):
                return Cut()
            case Entries() if any(entry.key == "advance" for entry in node.entries):
                advance = self.spec(node, AdvanceSpec)
                return advance and Advance(advance.advance)
            case Entries():
                return self.record(node)
            case _:
                hint = "write a record {topic: …, at: …, value: …}, batch, or advance: 2h"
                self.refuse(f"expected a record, found {describe(node)}", node.at, hint)
                return None

    def record(self, node: Entries) -> Given | None:
        spec = self.spec(node, GivenSpec)
        if spec is None:
            return None
        ways = [entry.at for entry in node.entries if entry.key in ("value", "raw", "raw_base64")]
        if len(ways) != 1:
            few = "a record needs a value" if not ways else "a record has one value"
            self.refuse(few, node.at, "give one of value, raw and raw_base64; null is a tombstone")
            return None
        place = (spec.topic, spec.partition)
        offset = self.offsets[place] if spec.offset is None else spec.offset
        if offset < self.offsets[place]:
            self.refuse(
                f"offset {offset} of '{spec.topic}' partition {spec.partition} is already taken",
                node.at,
                f"offsets rise in a partition; the next one is {self.offsets[place]}",
            )
        self.offsets[place] = offset + 1
        return Given(
            topic=spec.topic,
            partition=spec.partition,
            offset=offset,
            timestamp=spec.at,
            key=_bytes(spec.key),
            headers=tuple((name, _bytes(text)) for name, text in spec.headers.items()),
            value=self.content(spec, node),
            at=node.at,
        )

    def content(self, spec: GivenSpec, node: Entries) -> str | bytes | None:
        if spec.raw is not None:
            return spec.raw.encode()
        if spec.raw_base64 is not None:
            try:
                return base64.b64decode(spec.raw_base64, validate=True)
            except (binascii.Error, ValueError):
                self.refuse("raw_base64 is not base64", node.at, "use raw: for plain text")
        value = node.get("value")
        return None if value is None else json_text(json_of(value))

    def table(self, nodes: Sequence[Node]) -> tuple[tuple[LastSpec, Json], ...]:
        found: dict[tuple[str | None, str], tuple[LastSpec, Json]] = {}
        for node in nodes:
            last = self.row(node, LastSpec)
            if last is None:
                continue
            place = (last[0].topic, last[0].key)
            if place in found:
                self.refuse(f"key '{place[1]}' stands twice in a table", node.at, "keep the last")
            if last[1] is None:
                self.refuse(f"key '{place[1]}' has no value", node.at, "leave out deleted keys")
            found[place] = last
        return tuple(found.values())

    def row(self, node: Node, kind: type[R]) -> tuple[R, Json] | None:
        if not isinstance(node, Entries):
            self.refuse(f"expected a record, found {describe(node)}", node.at)
            return None
        spec = self.spec(node, kind)
        value = node.get("value")
        return spec and (spec, None if value is None else json_of(value))

    def spec(self, node: Node, kind: type[S]) -> S | None:
        checked = check_keys(node, kind, SHAPE)
        self.mistakes += checked.mistakes
        built = build(checked.tree, kind, SHAPE, {})
        if isinstance(built, kind):
            return built
        assert isinstance(built, tuple)
        self.mistakes += built
        return None

    def refuse(self, message: str, at: Location, hint: str | None = None) -> None:
        self.mistakes.append(ModelError(message, at, hint))


def _places(topics: Node | None) -> dict[tuple[str, str], Location]:
    return {
        (topic.key, column.key): column.at
        for topic in (topics.entries if isinstance(topics, Entries) else ())
        for column in (topic.value.entries if isinstance(topic.value, Entries) else ())
    }


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
