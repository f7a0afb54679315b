"""The files of processors in a project: where they are, and single keys of their YAML."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import yaml

from kaflow_engine.errors import Location, ModelError, UnknownName
from kaflow_engine.model.config import Config
from kaflow_engine.model.files.yaml_syntax import compose
from kaflow_engine.model.lenses.front_end import SQL, YAML, name_of
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.project import check_project

FOLDER = "pipelines"
"""Where a project keeps processors, beside its configuration."""

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessorFiles:
    """The one or two files of a processor."""

    stem: Path
    """Of both, without their endings."""
    sql: Path | None
    yaml: Path | None

    @property
    def all(self) -> tuple[Path, ...]:
        """Those that there are."""
        return tuple(file for file in (self.sql, self.yaml) if file is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnProcessor:
    """A processor of the project."""

    name: str
    files: ProcessorFiles
    spec: PipelineSpec | None
    """None: its files cannot be read."""


def project_folder(config: Config, given: Path | None, option: str) -> Path:
    """Return the folder of the project that processors are in.

    Args:
        config: Beside whose file it is.
        given: What the command line names.
        option: What names it there, for the way out.

    Raises:
        ModelError: There is none.
    """
    if given is None and config.file is None:
        hint = f"name it with {option} FOLDER, or the configuration with --config"
        raise ModelError("there is no configuration here, so the project is not known", hint=hint)
    folder = given if given is not None else Path(config.file or "").parent / FOLDER
    if not folder.is_dir():
        hint = f"create it, or name another one with {option} FOLDER"
        raise ModelError("there is no such folder", Location(str(folder)), hint)
    return folder


def files_at(file: Path) -> ProcessorFiles:
    """Return the files of the processor that one of them belongs to."""
    stem = file.parent / name_of(file)
    named = [stem.with_name(stem.name + end) for end in (SQL, *YAML)]
    sql, *yaml = [each if each.is_file() else None for each in named]
    return ProcessorFiles(stem=stem, sql=sql, yaml=next((y for y in yaml if y), None))


def is_processor_file(file: Path) -> bool:
    """Tell whether a file is called as one of a processor."""
    return file.name.endswith((SQL, *YAML))


def find_processor(folder: Path, name: str, config: Config) -> OwnProcessor:
    """Return the processor of a name.

    Raises:
        UnknownName: The folder has none.
    """
    found = {
        each.name: each
        for each in check_project([folder], config).pipelines
        if each.name is not None and is_processor_file(Path(each.at.file))
    }
    if name not in found:
        raise UnknownName("processor", name, found, Location(str(folder)))
    one = found[name]
    files = files_at(Path(one.at.file))
    return OwnProcessor(name=name, files=files, spec=None if one.mistakes else one.spec)


def has_key(text: str, key: str, file: Path) -> bool:
    """Tell whether a YAML mapping has a key.

    Raises:
        ModelError: The text is no YAML.
    """
    return _value_of(compose(text, Location(str(file))), key) is not None


def with_key(text: str, key: str, value: str | int, file: Path) -> str:
    """Return a YAML mapping with one key set; all other lines and comments stay.

    >>> with_key("name: a\\nrunners: 2  # two\\n", "runners", 4, Path("a.yaml"))
    'name: a\\nrunners: 4  # two\\n'
    >>> with_key("name: a", "runners", 4, Path("a.yaml"))
    'name: a\\nrunners: 4\\n'

    Raises:
        ModelError: The text is no YAML, or written in a way that only its author can change.
    """
    written = str(value) if isinstance(value, int) else _quoted(value)
    root = compose(text, Location(str(file)))
    found = _value_of(root, key)
    if found is not None:
        start, end = found.start_mark.index, found.end_mark.index
        gap = " " if start == end else ""  # nothing stands behind the colon
        changed = f"{text[:start]}{gap}{written}{text[end:]}"
    else:
        indent = " " * root.start_mark.column if root is not None else ""
        start = text if not text or text.endswith("\n") else f"{text}\n"
        changed = f"{start}{indent}{key}: {written}\n"
    if not _differs_in(key, str(value), root, changed):
        hint = f"write `{key}: {written}` into it"
        raise ModelError(f"'{key}' cannot be set in this file", Location(str(file)), hint)
    return changed


def _quoted(text: str) -> str:
    """Return a text as YAML, in quotes where it would be something else without."""
    return text if _PLAIN.fullmatch(text) and _as_yaml(text) == text else json.dumps(text)


def _as_yaml(text: str) -> object:
    return yaml.safe_load(text)


def _pairs(root: yaml.Node | None) -> list[tuple[yaml.Node, yaml.Node]]:
    return list(root.value) if isinstance(root, yaml.MappingNode) else []


def _value_of(root: yaml.Node | None, key: str) -> yaml.Node | None:
    return next((value for name, value in _pairs(root) if name.value == key), None)


def _differs_in(key: str, value: str, before: yaml.Node | None, changed: str) -> bool:
    """Tell whether a text has the keys that it had, and this one with this value."""
    try:
        after = compose(changed, Location(""))
    except ModelError:
        return False
    keys = [name.value for name, _ in _pairs(before)]
    wanted = keys if key in keys else [*keys, key]
    found = _value_of(after, key)
    return [name.value for name, _ in _pairs(after)] == wanted and (
        isinstance(found, yaml.ScalarNode) and found.value == value
    )
