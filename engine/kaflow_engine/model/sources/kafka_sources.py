"""Topics that a file names under `sources:`, as it may any other source: they are its topics."""

from kaflow_engine.model.files.tree import Entries, Entry, Node, lay_over, text_at, without

KIND = "kafka"


def with_topics(tree: Node) -> Node:
    """Return a tree whose sources of `type: kafka` stand under `topics:`."""
    said = tree.get("sources") if isinstance(tree, Entries) else None
    if not isinstance(tree, Entries) or not isinstance(said, Entries):
        return tree
    moved = [each for each in said.entries if _is_topic(each.value)]
    if not moved:
        return tree
    topics = Entries(
        at=said.at, entries=tuple(_renamed(each, without(each.value, ("type",))) for each in moved)
    )
    left: Node = tree
    for each in moved:
        left = without(left, ("sources", each.key))
    if len(moved) == len(said.entries):
        left = without(left, ("sources",))
    below = Entries(at=tree.at, entries=(Entry(key="topics", at=said.at, value=topics),))
    return lay_over(left, below)


def _is_topic(node: Node) -> bool:
    return isinstance(node, Entries) and text_at(node, "type") == KIND


def _renamed(entry: Entry, value: Node) -> Entry:
    return Entry(key=entry.key, at=entry.at, value=value)
