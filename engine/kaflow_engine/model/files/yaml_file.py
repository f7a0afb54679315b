"""YAML files → trees in which every key and value knows its line."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

import yaml

from kaflow_engine.errors import Location, ModelError, Problems
from kaflow_engine.model.files.tree import Entries, Entry, Items, Node, Scalar, brief
from kaflow_engine.model.files.variables import expand
from kaflow_engine.model.files.yaml_syntax import compose

LARGEST = 100_000
"""Most nodes of one file; aliases of aliases grow without bound."""

DEEPEST = 100
"""Most levels of nesting; far from Python's own limit."""

_TAGS = {
    f"tag:yaml.org,2002:{name}"
    for name in "map seq str int float bool null timestamp merge value".split()
}
_NOTHING = {"", "~", "null", "Null", "NULL"}
_BOOLEANS = {word: word.lower() == "true" for word in "true True TRUE false False FALSE".split()}
_VERBATIM = {"script"}
"""Keys whose text is in a language of its own, where `${…}` is no variable."""
_INTEGER = re.compile(r"[-+]?[0-9]{1,300}")
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What stands in a file, and the mistakes found so far."""

    root: Node
    mistakes: tuple[ModelError, ...]

    def sound(self) -> Node:
        """Return the root; raise the mistakes, if there are any."""
        raise_all(self.mistakes)
        return self.root


Rewrite = Callable[[str, Location], tuple[str, Location]]
"""Takes the text of a file and the place of it, and returns what is read in its stead, and where
that is."""


def read_yaml(
    path: Path,
    variables: Mapping[str, str],
    read: Callable[[str], str] | None = None,
    rewrite: Rewrite | None = None,
) -> Document:
    """Read a YAML file.

    Args:
        path: The file.
        variables: Values for `${VAR}`.
        read: Gives the content of files that `${file:…}` names.
        rewrite: Changes the text before it is parsed.

    Raises:
        ModelError: The file cannot be read or is not YAML.
    """
    text, at = read_text(path), Location(str(path))
    if rewrite is not None:
        text, at = rewrite(text, at)
    return parse_yaml(text, at, variables, read)


def read_text(path: Path) -> str:
    """Read a text file.

    Raises:
        ModelError: There is no such file, or it is not UTF-8 text.
    """
    at = Location(str(path))
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError as error:
        raise ModelError("no such file", at, _nearest(path)) from error
    except IsADirectoryError as error:
        raise ModelError("this is a folder, not a file", at) from error
    except OSError as error:
        raise ModelError("the file cannot be read", at, "check its permissions") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ModelError("not UTF-8 text", Location(str(path), line), "save it as UTF-8") from error


def _nearest(path: Path) -> str | None:
    """Return a hint at a file or folder that is called almost so."""
    if not path.parent.is_dir():
        return f"there is no folder '{path.parent}' either"
    others = [other for other in path.parent.iterdir() if not other.name.startswith(".")]
    by_stem = {other.stem: other for other in sorted(others)}
    close = get_close_matches(path.stem, by_stem, n=1, cutoff=0.6)
    return f"did you mean '{by_stem[close[0]]}'?" if close else None


def parse_yaml(
    text: str,
    at: Location,
    variables: Mapping[str, str] | None,
    read: Callable[[str], str] | None = None,
) -> Document:
    """Read YAML text; `at` is the file as places show it. Nothing but comments is an empty mapping.

    Without `variables`, `${VAR}` is a text as any other.

    Raises:
        ModelError: The text is not YAML.
    """
    root = compose(text, at)
    if root is None:
        return Document(root=Entries(at=at, entries=()), mistakes=())
    return from_yaml(root, at, variables, read)


def from_yaml(
    root: yaml.Node,
    at: Location,
    variables: Mapping[str, str] | None,
    read: Callable[[str], str] | None = None,
) -> Document:
    """Take over a composed PyYAML node; duplicate keys and unset variables are mistakes."""
    conversion = _Conversion(at, variables, read)
    node = conversion.node(root)
    return Document(root=node, mistakes=tuple(conversion.mistakes))


def raise_all(mistakes: Iterable[ModelError]) -> None:
    """Raise the mistakes, if there are any: one as itself, several as one error, by line."""
    raise_as_found(in_order(mistakes))


def raise_as_found(mistakes: Sequence[ModelError]) -> None:
    """Raise the mistakes, if there are any: one as itself, several as one error."""
    if len(mistakes) == 1:
        raise mistakes[0]
    if mistakes:
        raise Problems(mistakes)


def in_order(mistakes: Iterable[ModelError]) -> tuple[ModelError, ...]:
    """Return the mistakes of a file one by one, each once, by line."""
    flat = [
        part
        for mistake in mistakes
        for part in (mistake.errors if isinstance(mistake, Problems) else (mistake,))
    ]
    distinct = {str(mistake): mistake for mistake in flat}
    return tuple(sorted(distinct.values(), key=_line))


def _line(mistake: ModelError) -> int:
    return (mistake.at.line if mistake.at else None) or 0


class _Conversion:
    """One pass over composed nodes; what is wrong is collected."""

    def __init__(
        self,
        file: Location,
        variables: Mapping[str, str] | None,
        read: Callable[[str], str] | None,
    ) -> None:
        self.file = file
        self.variables = variables
        self.read = read
        self.mistakes: list[ModelError] = []
        self.count = 0
        self.open: list[yaml.Node] = []

    def node(self, node: yaml.Node) -> Node:
        at = self.place(node)
        self.count += 1
        if self.count > LARGEST:
            raise ModelError("the file is too large", at, "aliases may repeat too much")
        if len(self.open) > DEEPEST:
            raise ModelError("nested too deeply", at)
        if any(node is parent for parent in self.open):
            raise ModelError("an alias stands inside its own anchor", at, "write the value out")
        if node.tag not in _TAGS:
            tag = node.tag.replace("tag:yaml.org,2002:", "!!")
            self.refuse(f"the tag '{brief(tag)}' is not supported", at, "remove it")
        self.open.append(node)
        if isinstance(node, yaml.MappingNode):
            found: Node = self.entries(node, at)
        elif isinstance(node, yaml.SequenceNode):
            found = Items(at=at, items=tuple(self.node(item) for item in node.value))
        else:
            assert isinstance(node, yaml.ScalarNode)
            found = self.scalar(node, at)
        self.open.pop()
        return found

    def entries(self, node: yaml.MappingNode, at: Location) -> Entries:
        found: dict[str, Entry] = {}
        for key, value in node.value:
            place = self.place(key)
            if not isinstance(key, yaml.ScalarNode):
                self.refuse("a key must be text", place, "write key: value")
            elif key.tag.endswith(":merge"):
                self.refuse("merge keys ('<<') are not supported", place, "write the keys out")
            elif key.value in found:
                first = found[key.value].at.line
                self.refuse(
                    f"'{brief(key.value)}' is given twice, first in line {first}",
                    place,
                    "remove one of them",
                )
            else:
                made = self.verbatim(value) if key.value in _VERBATIM else self.node(value)
                found[key.value] = Entry(key=key.value, at=place, value=made)
        return Entries(at=at, entries=tuple(found.values()))

    def scalar(self, node: yaml.ScalarNode, at: Location) -> Scalar:
        def place(offset: int) -> Location:
            # Other styles fold lines, so that only blocks tell where a character stands.
            lines = node.value.count("\n", 0, offset) if node.style == "|" else 0
            return replace(self.file, line=(at.line or 1) + lines)

        text, mistakes = node.value, list[ModelError]()
        if self.variables is not None:
            text, mistakes = expand(node.value, self.variables, place, self.read)
        self.mistakes.extend(mistakes)
        plain = not node.style
        if mistakes:
            return Scalar(at=at, text=None, written=node.value, value=None, broken=True)
        if plain and (not text or node.value in _NOTHING):
            return Scalar(at=at, text=None, written=node.value, value=None)
        value = _resolve(text) if plain else text
        return Scalar(at=at, text=text, written=node.value, value=value)

    def verbatim(self, node: yaml.Node) -> Node:
        """Take text over in which `${…}` means something else."""
        if not isinstance(node, yaml.ScalarNode) or node.style is None:
            return self.node(node)
        text = node.value
        return Scalar(at=self.place(node), text=text, written=text, value=text)

    def place(self, node: yaml.Node) -> Location:
        block = isinstance(node, yaml.ScalarNode) and node.style in ("|", ">")
        return replace(self.file, line=node.start_mark.line + (2 if block else 1))

    def refuse(self, message: str, at: Location, hint: str | None = None) -> None:
        self.mistakes.append(ModelError(message, at, hint))


def _resolve(text: str) -> str | int | float | bool:
    """Read a plain scalar as YAML 1.2 does: `on` and `10:30` are text."""
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text
