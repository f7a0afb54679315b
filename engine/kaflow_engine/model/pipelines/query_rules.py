"""What is wrong with what queries say themselves, although each value is right."""

from collections.abc import Iterator

from kaflow_engine.errors import ModelError
from kaflow_engine.model.files.mistakes import dotted, place
from kaflow_engine.model.files.tree import Entries, Items, Scalar, brief, text_at
from kaflow_engine.model.pipelines.output_rules import outputs_of
from kaflow_engine.model.pipelines.table_rules import is_table, is_true
from kaflow_engine.model.query_settings import OF_QUERIES
from kaflow_engine.model.spec import Path


def keys_of_smart_emission(tree: Entries) -> Iterator[ModelError]:
    """`require` and `on_expiry` say what smart emission does."""
    for path, said in _emissions(tree):
        emission = text_at(said, "type") or "immediate"
        if emission not in ("immediate", "on_match", "final"):
            continue
        for key in ("require", "on_expiry"):
            value = said.get(key)
            if value is None or (isinstance(value, Items) and not value.items):
                continue
            yield ModelError(
                f"emission.{key} is only for smart emission",
                place(tree, (*path, key)),
                f"set emission.type to smart, or remove {key}",
            )


def late_updates_of_windows(tree: Entries) -> Iterator[ModelError]:
    """`late_updates` says more of rows that are final."""
    for path, said in _emissions(tree):
        if is_true(said, "late_updates") and text_at(said, "type") != "final":
            yield ModelError(
                "emission.late_updates is only for final emission",
                place(tree, (*path, "late_updates")),
                "set emission.type to final, or remove it: under immediate every change leaves",
            )


def windows_of_final_emission(tree: Entries) -> Iterator[ModelError]:
    """`windows` says of windows what `type` says of joins."""
    for path, said in _emissions(tree):
        if text_at(said, "windows") == "immediate" and text_at(said, "type") == "final":
            yield ModelError(
                "emission.windows contradicts emission.type: final, which is for windows, too",
                place(tree, (*path, "windows")),
                "remove type: changes of windows then leave as they arise",
            )


def settings_without_a_query(tree: Entries) -> Iterator[ModelError]:
    """An output says only of a query of its own when rows leave."""
    for path, output in outputs_of(tree):
        relation = text_at(output, "from")
        for key in OF_QUERIES if relation is not None and path[0] == "outputs" else ():
            if output.get(key) is not None:
                yield ModelError(
                    f"{dotted(path)}.{key} is only for a query of the output itself",
                    place(tree, (*path, key)),
                    f"write it at the relation '{brief(relation or '')}'",
                )


def state_of_queries(tree: Entries) -> Iterator[ModelError]:
    """A query says how long events are kept that it joins; what a topic is, the pipeline says."""
    dimensions = tree.get("state", "dimensions")
    named = dimensions.items if isinstance(dimensions, Items) else ()
    kept = {item.text for item in named if isinstance(item, Scalar)}
    for path, state in _said(tree, "state"):
        if not path[:-1]:
            continue
        if state.get("dimensions") is not None:
            yield ModelError(
                "'dimensions' are those of the pipeline: a topic is one for all its queries",
                place(tree, (*path, "dimensions")),
                "write it under state of the pipeline; or read the topic as a table in a relation, "
                "{topic: <topic>, table: true, primary_key: [<column>]}",
            )
        overrides = state.get("events", "overrides")
        for entry in overrides.entries if isinstance(overrides, Entries) else ():
            table = is_table(tree.get("topics", entry.key))
            if table or entry.key in kept:
                yield ModelError(
                    f"topic '{brief(entry.key)}' is a {'table' if table else 'dimension'}, and has "
                    "no TTL",
                    entry.at,
                    "take it out: only events are kept for a TTL",
                )


def _emissions(tree: Entries) -> Iterator[tuple[Path, Entries]]:
    """Yield what is said of when rows leave: for the pipeline, and by one query of it."""
    yield from _said(tree, "emission")


def _said(tree: Entries, key: str) -> Iterator[tuple[Path, Entries]]:
    relations = tree.get("relations")
    named = relations.entries if isinstance(relations, Entries) else ()
    found: list[tuple[Path, object]] = [((), tree)]
    found += [(("relations", entry.key), entry.value) for entry in named]
    found += [(path, output) for path, output in outputs_of(tree) if path[0] == "outputs"]
    for path, query in found:
        said = query.get(key) if isinstance(query, Entries) else None
        if isinstance(said, Entries):
            yield (*path, key), said
