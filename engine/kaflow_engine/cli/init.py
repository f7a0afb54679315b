"""`kaflow init`: a small project that works, to start from."""

import re
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import click

from kaflow_engine.errors import ModelError

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_RENAMED = {"gitignore": ".gitignore"}
"""What packaging would leave out if it had its own name."""


@click.command("init")
@click.argument("folder", metavar="NAME", type=click.Path(path_type=Path))
def command(folder: Path) -> None:
    """Write a new project into the folder NAME."""
    if not _NAME.fullmatch(folder.name):
        raise ModelError(
            f"'{folder.name}' is not a name for a project",
            hint="start with a letter; use letters, digits, '_' and '-'",
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ModelError(f"'{folder}' exists already", hint="choose another name")
    written = write_project(folder)
    for path in written:
        click.echo(f"  {path}")
    click.echo(f"{len(written)} files; next: cd {folder}, and see README.md")


def write_project(folder: Path) -> list[Path]:
    """Write a new project; returns its files."""
    return sorted(_copy(files("kaflow_engine.cli").joinpath("new_project"), folder, folder.name))


def _copy(source: Traversable, target: Path, name: str) -> list[Path]:
    target.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for item in source.iterdir():
        if item.is_dir():
            if item.name != "__pycache__":
                written += _copy(item, target / item.name, name)
            continue
        path = target / _RENAMED.get(item.name, item.name)
        path.write_text(item.read_text(encoding="utf-8").replace("@NAME@", name), encoding="utf-8")
        written.append(path)
    return written
