"""What is wrong with where dead letters go, although every value alone is right."""

from collections.abc import Iterator

from kaflow_engine.errors import ModelError
from kaflow_engine.model.files.mistakes import place
from kaflow_engine.model.files.tree import Entries, text_at

_OF_KINDS = {"topic": "kafka", "cluster": "kafka", "connection": "postgres", "table": "postgres"}
_KINDS = ("kafka", "files", "postgres")


def place_of_letters(tree: Entries) -> Iterator[ModelError]:
    """Each kind of place has keys of its own."""
    said = tree.get("dead_letters")
    if not isinstance(said, Entries):
        return
    kind = text_at(said, "type")
    if kind is not None and kind not in _KINDS:
        return  # it is reported as a value
    for entry in said.entries:
        own = _OF_KINDS.get(entry.key)
        runs = entry.key == "cluster" and kind is not None  # that of the runs, wherever letters go
        if own is not None and own != (kind or "kafka") and not runs:
            yield ModelError(
                f"dead_letters.{entry.key} is only for type: {own}",
                place(tree, ("dead_letters", entry.key)),
                f"remove it, or write type: {own}",
            )
    if kind == "postgres" and said.get("table") is None and "table" not in said.misspelled:
        yield ModelError(
            "'dead_letters.table' is required",
            place(tree, ("dead_letters",)),
            "write table: <table>; it is created unless it is there",
        )
