"""What is wrong with where rows go, although every value alone is right."""

from collections.abc import Iterator

from kaflow_engine.errors import ModelError
from kaflow_engine.model.files.mistakes import dotted, place
from kaflow_engine.model.files.tree import Entries, Items, Node, brief, text_at
from kaflow_engine.model.names import topic_target
from kaflow_engine.model.outputs.sink_specs import has_settings
from kaflow_engine.model.spec import Path

_OF_TOPIC = (
    *("cluster", "key", "key_format", "key_schema", "format", "format_options", "schema"),
    *("changes", "operation", "trace_context", "new_topic"),
)
_OF_TABLE = ("partition", "interval")
_TARGETS = {"kafka": "topic", "delta": "table"}


def outputs_of(tree: Entries) -> Iterator[tuple[Path, Entries]]:
    """Return each output with its place, in whichever form the file has them."""
    one, several = tree.get("output"), tree.get("outputs")
    if isinstance(one, Entries):
        yield ("output",), one
    for number, entry in enumerate(several.items if isinstance(several, Items) else ()):
        if isinstance(entry, Entries):
            yield ("outputs", number), entry


def output_of_one_kind(tree: Entries) -> Iterator[ModelError]:
    """Rows go to a topic or into a table, and some keys belong to one of them."""
    for path, output in _topics_and_tables(tree):
        yield from _of_one_kind(tree, path, output)


def schema_of_keys(tree: Entries) -> Iterator[ModelError]:
    """A schema of keys is given where they have one."""
    for path, output in outputs_of(tree):
        if output.get("key_schema") is not None and text_at(output, "key_format") != "avro":
            yield ModelError(
                f"{dotted(path)}.key_schema is only for keys that are Avro",
                place(tree, (*path, "key_schema")),
                f"set {dotted(path)}.key_format to avro, or remove it",
            )


def _topics_and_tables(tree: Entries) -> Iterator[tuple[Path, Entries]]:
    """Return the outputs that are no sink with settings of its own."""
    found = outputs_of(tree)
    return ((path, out) for path, out in found if not has_settings(text_at(out, "type") or ""))


def _of_one_kind(tree: Entries, path: Path, output: Entries) -> Iterator[ModelError]:
    if {"type", "topic", "table"} & output.misspelled:
        return
    name, said = dotted(path), {entry.key for entry in output.entries}
    kind = text_at(output, "type") or ""
    target = _TARGETS.get(kind)
    if not said & {"topic", "table"}:
        wanted = target or "topic"
        hint = f"write {wanted}: <{wanted}>; the rows go there"
        yield ModelError(f"'{name}.{wanted}' is required", place(tree, path), hint)
        return
    if said >= {"topic", "table"}:
        yield ModelError(
            f"{name}.table and {name}.topic exclude each other",
            place(tree, (*path, "table")),
            "keep one; another output can write the other"
            if path[0] == "outputs"
            else "keep one; another pipeline can write the other",
        )
        return
    if target is not None and target not in said:
        (other,) = said & {"topic", "table"}
        yield ModelError(
            f"{name}.type is {kind}, which has no {other}",
            place(tree, (*path, "type")),
            f"write {target}: <{target}>, or remove type: a {other} says it",
        )
        return
    of_other, other = (_OF_TOPIC, "topic") if "table" in said else (_OF_TABLE, "table")
    for key in of_other:
        if key in said:
            yield ModelError(
                f"{name}.{key} is only for a {other}",
                place(tree, (*path, key)),
                f"remove it, or write to a {other}",
            )


def one_output_for_a_target(tree: Entries) -> Iterator[ModelError]:
    """Rows of two outputs in one topic or table could not be distinguished."""
    first: dict[str, tuple[str, Path]] = {}
    for path, output in _topics_and_tables(tree):
        for kind in ("topic", "table"):
            name = text_at(output, kind)
            if name is None:
                continue
            target = topic_target(name, text_at(output, "cluster") or "")
            before, other = first.setdefault(target, (kind, path))
            if other == path:
                continue
            where = place(tree, (*other, before))
            yield ModelError(
                f"two outputs write {kind} '{brief(name)}', the other one at {where}"
                if before == kind
                else f"{kind} '{brief(name)}' has the name of a {before} at {where}",
                place(tree, (*path, kind)),
                f"give one of them another {kind}"
                if before == kind
                else "call one of them otherwise: a pipeline knows its outputs by their names",
            )


def options_of_formats(tree: Entries) -> Iterator[ModelError]:
    """Only formats of plugins have options."""
    topics = tree.get("topics")
    found: list[tuple[Path, Node]] = [*outputs_of(tree)]
    if isinstance(topics, Entries):
        found += [(("topics", entry.key), entry.value) for entry in topics.entries]
    for path, said in found:
        if not isinstance(said, Entries) or said.get("format_options") is None:
            continue
        form = text_at(said, "format") or "json"
        if "." not in form:
            yield ModelError(
                f"'format_options' are of formats of plugins, and this one is {brief(form)}",
                place(tree, (*path, "format_options")),
                "write format: <plugin>, or remove format_options",
            )
