"""Whether a file is a Streamling one: by its keys, so that one with mistakes is, too."""

from kaflow_engine.model.files.tree import Entries, Node

JSON = ".json"
"""How names of files end beside those of YAML."""
_OWN = frozenset({"transforms", "sinks"})
_OF_OTHERS = frozenset(
    {"name", "query", "output", "outputs", "relations", "topics", "models", "unit_tests"}
)


def is_streamling(root: Node) -> bool:
    """Tell whether a file is a topology, right or wrong."""
    if not isinstance(root, Entries):
        return False
    keys = {entry.key for entry in root.entries}
    if keys & _OF_OTHERS:
        return False
    return bool(keys & _OWN) or isinstance(root.get("sources"), Entries)
