"""Packages with plugins that are not installed: a folder, a wheel or a module names them."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.plugins.installed import forget_loaded

_ARCHIVES = (".whl", ".zip")


def look_in(path: Path, at: Location) -> None:
    """Let the packages at a path count as installed, in this process and those that it starts.

    They stand behind all that is installed.

    Args:
        path: A folder of packages and wheels; or a wheel, or a module whose package is described
            beside it.
        at: Who says so.

    Raises:
        ModelError: No package with entry points is there.
    """
    places = [str(place) for place in _places(path.absolute())]
    if not places:
        raise ModelError(
            f"there are no plugins at '{path}'",
            at,
            "name a wheel, or a folder with wheels or with packages as pip install --target leaves "
            "them: modules, and a folder *.dist-info that has their entry points",
        )
    known = os.environ.get("PYTHONPATH", "")
    new = [place for place in places if place not in sys.path]
    if new:
        sys.path += new
        os.environ["PYTHONPATH"] = os.pathsep.join([*([known] if known else []), *new])
        forget_loaded()


def _places(path: Path) -> Iterator[Path]:
    """Yield what goes onto the path of modules."""
    if path.suffix in _ARCHIVES and path.is_file():
        yield path
    elif path.suffix == ".py" and path.is_file():
        yield from _places(path.parent)
    elif path.is_dir():
        if any(path.glob("*.dist-info/entry_points.txt")):
            yield path
        yield from sorted(each for each in path.iterdir() if each.suffix in _ARCHIVES)
