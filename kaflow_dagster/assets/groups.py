"""Asset groups: each pipeline is shown with what it reads and writes, under its folder or group."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from kaflow_engine.api.project import FOLDERS

SHARED = "sources"
"""Topics that pipelines of several groups read, and none of the project writes."""

MISTAKES = "mistakes"
"""What is wrong between files."""

_BETWEEN = "__"


def folder_group(file: Path, paths: Sequence[Path]) -> str:
    """Return the group of a pipeline that names none: its folder below `models/` or `pipelines/`.

    A file that stands in one of these itself is in the group of the project's folder.

    Args:
        file: Of the pipeline, absolute.
        paths: Files and folders that were read, absolute.

    >>> folder_group(Path("/shop/models/marts/eu-west/a.sql"), [Path("/shop")])
    'marts__eu_west'
    >>> folder_group(Path("/shop/pipelines/a.yaml"), [Path("/shop/pipelines")])
    'shop'
    >>> folder_group(Path("/etc/kaflow/orders/a.yaml"), [Path("/etc/kaflow")])
    'orders'
    """
    folder = file.parent
    roots = [each for each in (folder, *folder.parents) if each.name in FOLDERS]
    if roots:
        root, project = roots[0], roots[0].parent
    else:
        root = project = next((path for path in paths if path in folder.parents), folder)
    parts = folder.relative_to(root).parts or (project.name or root.name,)
    return _BETWEEN.join(re.sub(r"[^A-Za-z0-9_]", "_", part) for part in parts)


def topic_group(readers: Iterable[str]) -> str:
    """Return the group of a topic that no pipeline writes, from the groups of those that read it.

    >>> topic_group(["marts", "marts"]), topic_group(["marts", "staging"])
    ('marts', 'sources')
    """
    groups = set(readers)
    return groups.pop() if len(groups) == 1 else SHARED
