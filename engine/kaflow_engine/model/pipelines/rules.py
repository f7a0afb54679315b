"""What is wrong with a pipeline file although every value alone is right.

A rule reads the tree, not the specification, so that it speaks up next to other mistakes.
"""

from collections.abc import Callable, Iterator

from kaflow_engine.errors import ModelError
from kaflow_engine.model.files.mistakes import REQUIRED, dotted, place
from kaflow_engine.model.files.tree import Entries, Items, Node, Scalar, brief, text_at
from kaflow_engine.model.formats import WITH_FIELDS, WITH_SCHEMA, is_format, one_of
from kaflow_engine.model.pipelines.key_rules import types_of_keys
from kaflow_engine.model.pipelines.letter_rules import place_of_letters
from kaflow_engine.model.pipelines.output_rules import (
    one_output_for_a_target,
    options_of_formats,
    output_of_one_kind,
    outputs_of,
    schema_of_keys,
)
from kaflow_engine.model.pipelines.phase_rules import phases_of_sources
from kaflow_engine.model.pipelines.query_rules import (
    keys_of_smart_emission,
    late_updates_of_windows,
    settings_without_a_query,
    state_of_queries,
    windows_of_final_emission,
)
from kaflow_engine.model.pipelines.relation_rules import keys_of_relations
from kaflow_engine.model.pipelines.source_rules import (
    names_of_sources,
    places_of_webhooks,
    records_of_sources,
    sessions_of_brokers,
    settings_of_attached,
    settings_of_sources,
)
from kaflow_engine.model.pipelines.table_rules import inputs_of, is_table, keys_of_tables
from kaflow_engine.model.pipelines.transform_rules import keys_of_transforms
from kaflow_engine.model.spec import Path

Rule = Callable[[Entries], Iterator[ModelError]]


def topic_in_two_roles(tree: Entries) -> Iterator[ModelError]:
    """A dimension is kept for ever, so a TTL for it contradicts itself."""
    dimensions = _texts(tree, "state", "dimensions")
    overrides = tree.get("state", "events", "overrides")
    for entry in overrides.entries if isinstance(overrides, Entries) else ():
        if entry.key in dimensions:
            topic = brief(entry.key)
            yield ModelError(
                f"topic '{topic}' is in both state.events.overrides and state.dimensions",
                entry.at,
                "take it out of one: a dimension is kept for ever, an event for its TTL",
            )


def schema_without_registry(tree: Entries) -> Iterator[ModelError]:
    """A schema is given where it is registered, and its fields where the format takes them."""
    for path, output in outputs_of(tree):
        given, form = output.get("schema"), text_at(output, "format") or "json"
        if given is None or not is_format(form):
            continue
        key = f"{dotted(path)}.format"
        if form not in WITH_SCHEMA:
            yield ModelError(
                f"{dotted(path)}.schema is only for formats with schemas, and this one is {form}",
                place(tree, (*path, "schema")),
                f"set {key} to {one_of(WITH_SCHEMA)}, or remove the schema",
            )
        elif form not in WITH_FIELDS and output.get("schema", "fields") is not None:
            yield ModelError(
                f"{dotted(path)}.schema.fields are not for {form}",
                place(tree, (*path, "schema", "fields")),
                f"remove them, for the query gives the fields, or set {key} to "
                f"{one_of(WITH_FIELDS)}",
            )


def fields_without_name(tree: Entries) -> Iterator[ModelError]:
    """A field of an Avro schema has a name and a type."""
    for path, output in outputs_of(tree):
        fields = output.get("schema", "fields")
        for index, field in enumerate(fields.items if isinstance(fields, Items) else ()):
            if not isinstance(field, Entries):
                continue
            for key in ("name", "type"):
                if field.get(key) is None:
                    at = place(tree, (*path, "schema", "fields", index))
                    hint = "write it as {name: <column>, type: <Avro type>}"
                    text = f"a field of {dotted(path)}.schema has no '{key}'"
                    yield ModelError(text, at, hint)


def versions_of_dimensions(tree: Entries) -> Iterator[ModelError]:
    """Only a dimension has versions, and only `as_of` looks at old ones."""
    dimensions = _texts(tree, "state", "dimensions")
    for path, said in inputs_of(tree):
        name = str(path[-1])
        lookup = text_at(said, "lookup") or "current"
        if lookup == "as_of" and name not in dimensions and not is_table(said):
            yield ModelError(
                f"'lookup: as_of' is only for dimensions, and '{brief(name)}' is not one",
                place(tree, (*path, "lookup")),
                "add it to state.dimensions, or remove lookup",
            )
        kept = _kept_versions(tree, path)
        if lookup == "current" and kept is not None and not is_table(said):
            yield ModelError(
                f"{kept[-1]} has no meaning without 'lookup: as_of'",
                place(tree, kept),
                f"add 'lookup: as_of', or remove {kept[-1]}",
            )


def _kept_versions(tree: Entries, said: Path) -> Path | None:
    """Return the key that says how long versions are kept, if one does."""
    path = (*map(str, said), "history")
    if isinstance(tree.get(*path), Scalar):
        return path
    return (*path, "keep") if tree.get(*path, "keep") is not None else None


def null_values_of_dimensions(tree: Entries) -> Iterator[ModelError]:
    """A null value of a dimension deletes."""
    for topic in sorted(_texts(tree, "state", "dimensions")):
        path: Path = ("topics", topic, "on_null")
        if text_at(tree, *path) == "row":
            yield ModelError(
                f"'on_null: row' is only for events, and '{brief(topic)}' is a dimension",
                place(tree, path),
                "remove it: a null value deletes the entry under its key; or take the topic out of "
                "state.dimensions",
            )


def one_topic_for_two_uses(tree: Entries) -> Iterator[ModelError]:
    """Rows and dead letters must be told apart."""
    letters = text_at(tree, "dead_letters", "topic")
    for path, output in outputs_of(tree):
        if letters is not None and letters == text_at(output, "topic"):
            yield ModelError(
                f"dead_letters.topic is also {dotted(path)}.topic",
                place(tree, ("dead_letters", "topic")),
                "give dead letters a topic of their own",
            )


def one_form_of_outputs(tree: Entries) -> Iterator[ModelError]:
    """A query with its output, or several outputs with a query each."""
    outputs = tree.get("outputs")
    if outputs is None:
        for key in ("query", "output"):
            if _missing(tree, key) and key not in tree.misspelled:
                yield ModelError(f"'{key}' is required", tree.at, REQUIRED[key])
        return
    for key in ("query", "output", "columns", "checks"):
        if tree.get(key) is not None:
            yield ModelError(
                f"'{key}' stands beside 'outputs'",
                place(tree, (key,)),
                f"write it as {key}: of one of the outputs"
                if key != "output"
                else "write it as one of the outputs",
            )
    if isinstance(outputs, Items) and not outputs.items:
        hint = "write - {from: <relation>, topic: <topic>}"
        yield ModelError("'outputs' is empty", place(tree, ("outputs",)), hint)


def one_query_of_an_output(tree: Entries) -> Iterator[ModelError]:
    """One of several outputs says in one way what is written."""
    for path, output in outputs_of(tree):
        if path == ("output",) or {"type", "from", "query"} & output.misspelled:
            continue
        said = [key for key in ("from", "query") if output.get(key) is not None]
        if len(said) == 1:
            continue
        text = (
            "'from' and 'query' exclude each other"
            if said
            else "this output names no relation and no query"
        )
        hint = "write from: <relation>, or query: SELECT … FROM …"
        yield ModelError(text, place(tree, (*path, said[-1]) if said else path), hint)


def types_beside_columns(tree: Entries) -> Iterator[ModelError]:
    """Columns that are declared have their types."""
    topics = tree.get("topics")
    for entry in topics.entries if isinstance(topics, Entries) else ():
        said = entry.value
        if isinstance(said, Entries) and said.get("types") and said.get("columns"):
            yield ModelError(
                "'types' stands beside 'columns', which say the types of all",
                place(tree, ("topics", entry.key, "types")),
                "remove it",
            )


RULES: tuple[Rule, ...] = (
    one_form_of_outputs,
    output_of_one_kind,
    one_query_of_an_output,
    one_output_for_a_target,
    place_of_letters,
    topic_in_two_roles,
    keys_of_smart_emission,
    late_updates_of_windows,
    windows_of_final_emission,
    settings_without_a_query,
    state_of_queries,
    schema_without_registry,
    schema_of_keys,
    fields_without_name,
    versions_of_dimensions,
    null_values_of_dimensions,
    types_of_keys,
    types_beside_columns,
    options_of_formats,
    one_topic_for_two_uses,
    keys_of_tables,
    keys_of_relations,
    keys_of_transforms,
    names_of_sources,
    records_of_sources,
    places_of_webhooks,
    settings_of_attached,
    sessions_of_brokers,
    settings_of_sources,
    phases_of_sources,
)


def _missing(tree: Entries, key: str) -> bool:
    """Tell whether nothing stands under a key; what is broken is reported elsewhere."""
    found = [entry.value for entry in tree.entries if entry.key == key]
    return all(isinstance(v, Scalar) and v.text is None and not v.broken for v in found)


def _texts(tree: Entries, *path: str) -> set[str]:
    node: Node | None = tree.get(*path)
    items = node.items if isinstance(node, Items) else ()
    return {item.text for item in items if isinstance(item, Scalar) and item.text is not None}
