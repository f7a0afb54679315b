"""What is wrong with sources in phases, although every value alone is right."""

from collections.abc import Iterator

from kaflow_engine.errors import ModelError
from kaflow_engine.model.files.mistakes import place
from kaflow_engine.model.files.tree import Entries, Items, brief, text_at
from kaflow_engine.model.pipelines.output_rules import outputs_of
from kaflow_engine.model.pipelines.source_rules import sources_of
from kaflow_engine.model.pipelines.table_rules import is_said
from kaflow_engine.model.spec import Path

_HANDOVERS = ("columns", "offsets", "time", "query", "start_at")
_OF_TABLES = ("columns", "query")
_WAYS = (
    "write handover: {columns: {partition: …, offset: …}}, {query: SELECT …}, {offsets: {0: …}}, "
    "{time: …} or {start_at: earliest}"
)


def phases_of_sources(tree: Entries) -> Iterator[ModelError]:
    """A topic that follows phases begins somewhere, and all of them have the same columns."""
    for name, path, said in sources_of(tree):
        if text_at(said, "type") != "hybrid" or said.misspelled:
            continue
        topic = text_at(said, "topic")
        registered = topic is not None and text_at(said, "topic_format") == "avro"
        if not is_said(said, "columns") and not (registered and not is_said(said, "job")):
            yield ModelError(
                f"the columns of '{brief(name)}' are not known: its phases must all have the same",
                place(tree, path),
                "add columns: {<name>: <type>}",
            )
        yield from _handovers(tree, path, said, brief(name), topic)
        for at, output in outputs_of(tree):
            if topic is not None and text_at(output, "topic") == topic:
                yield ModelError(
                    f"source '{brief(name)}' reads the topic that the pipeline writes",
                    place(tree, (*at, "topic")),
                    "write another topic",
                )


def _handovers(
    tree: Entries, path: Path, said: Entries, called: str, topic: str | None
) -> Iterator[ModelError]:
    handover = said.get("handover")
    ways = [key for key in _HANDOVERS if isinstance(handover, Entries) and is_said(handover, key)]
    at = place(tree, (*path, "handover"))
    if isinstance(handover, Entries) and handover.misspelled:
        return
    if topic is None:
        if handover is not None:
            yield ModelError(
                f"'handover' of '{called}' has no meaning: no topic follows its phases",
                at,
                "remove it, or add topic: <name>",
            )
        return
    if not ways:
        yield ModelError(
            f"'{called}' does not say from where topic '{brief(topic)}' is read behind its phases",
            at,
            _WAYS,
        )
    elif len(ways) > 1:
        yield ModelError(
            f"'{called}' says in {len(ways)} ways from where topic '{brief(topic)}' is read: "
            f"{', '.join(ways)}",
            at,
            "write one of them",
        )
    elif ways[0] in _OF_TABLES and _last_phase(said) == "files":
        what = "table whose columns say" if ways == ["columns"] else "database that says"
        yield ModelError(
            f"the last phase of '{called}' is no {what} where topic '{brief(topic)}' takes over",
            at,
            "write handover: {offsets: {0: …}}, {time: …} or {start_at: earliest}",
        )


def _last_phase(said: Entries) -> str | None:
    phases = said.get("phases")
    last = phases.items[-1] if isinstance(phases, Items) and phases.items else None
    return text_at(last, "type") if isinstance(last, Entries) else None
