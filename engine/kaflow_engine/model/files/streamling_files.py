"""Whether a file is a Streamling one: by its keys, so that one with mistakes is, too."""

from pathlib import Path

from kaflow_engine.model.files.tree import Entries, Node

JSON = ".json"
"""How names of files end beside those of YAML."""
LARGEST = 1_000_000
"""Most bytes of a JSON file that is looked into where no one names it."""
_OWN = frozenset({"transforms", "sinks"})
_OF_OTHERS = frozenset(
    {"query", "output", "outputs", "relations", "topics", "models", "unit_tests"}
)


def is_streamling(root: Node) -> bool:
    """Tell whether a file is a topology, right or wrong."""
    if not isinstance(root, Entries):
        return False
    keys = {entry.key for entry in root.entries}
    if keys & _OF_OTHERS:
        return False
    return bool(keys & _OWN) or ("name" not in keys and isinstance(root.get("sources"), Entries))


def may_be_streamling(path: Path) -> bool:
    """Tell whether a JSON file that no one named is worth reading: most are data."""
    try:
        if path.stat().st_size > LARGEST:
            return False
        return b'"sinks"' in path.read_bytes()
    except OSError:
        return False
