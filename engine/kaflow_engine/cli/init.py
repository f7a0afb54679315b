"""`kaflow init`: a small project that works, to start from."""

import re
from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import click

from kaflow_engine.errors import ModelError

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_PLUGIN = re.compile(r"[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*")
_RENAMED = {"gitignore": ".gitignore"}
"""What packaging would leave out if it had its own name."""


@click.command("init")
@click.argument("folder", metavar="NAME", type=click.Path(path_type=Path))
@click.option(
    "--plugin", is_flag=True, help="Write the package of a plugin; NAME is as acme.tally."
)
def command(folder: Path, plugin: bool) -> None:
    """Write a new project into the folder NAME, or the package of a plugin."""
    if plugin and not _PLUGIN.fullmatch(folder.name):
        raise ModelError(
            f"'{folder.name}' is not a name for a plugin",
            hint="write <namespace>.<name> in small letters, such as acme.tally",
        )
    if not plugin and not _NAME.fullmatch(folder.name):
        raise ModelError(
            f"'{folder.name}' is not a name for a project",
            hint="start with a letter; use letters, digits, '_' and '-'",
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ModelError(f"'{folder}' exists already", hint="choose another name")
    written = write_plugin(folder) if plugin else write_project(folder)
    for path in written:
        click.echo(f"  {path}")
    click.echo(f"{len(written)} files; next: cd {folder}, and see README.md")


def write_project(folder: Path) -> list[Path]:
    """Write a new project; returns its files."""
    return _write("new_project", folder, {"@NAME@": folder.name})


def write_plugin(folder: Path) -> list[Path]:
    """Write the package of a plugin that works; returns its files."""
    name = folder.name
    words = {
        "@NAME@": name,
        "plugin_package": name.replace(".", "_"),
        "@DISTRIBUTION@": name.replace(".", "-").replace("_", "-"),
    }
    return _write("new_plugin", folder, words)


def _write(template: str, folder: Path, words: Mapping[str, str]) -> list[Path]:
    return sorted(_copy(files("kaflow_engine.cli").joinpath(template), folder, words))


def _copy(source: Traversable, target: Path, words: Mapping[str, str]) -> list[Path]:
    target.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for item in source.iterdir():
        if item.is_dir():
            if item.name != "__pycache__":
                written += _copy(item, target / words.get(item.name, item.name), words)
            continue
        path = target / _RENAMED.get(item.name, item.name)
        text = item.read_text(encoding="utf-8")
        for word, meant in words.items():
            text = text.replace(word, meant)
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written
