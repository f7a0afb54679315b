"""Schema evolution: the differences between two schemas of one topic, field by field."""

from collections.abc import Sequence

from kaflow_engine.errors import SourceError
from kaflow_engine.model.columns import Column


class SchemaChanged(SourceError):
    """Records have another schema than the pipeline was started with, and that is to stop it."""


def field_changes(before: Sequence[Column], after: Sequence[Column]) -> tuple[str, ...]:
    """Return one line for each field that was added, removed, or has another type.

    >>> field_changes([Column("a", "INTEGER")], [Column("b", "BIGINT")])
    ("field 'a' INTEGER was removed", "field 'b' BIGINT was added")
    """
    old = {column.name: column.type for column in before}
    new = {column.name: column.type for column in after}
    lines: list[str] = []
    for name in dict.fromkeys([*old, *new]):
        if name not in new:
            lines.append(f"field '{name}' {old[name]} was removed")
        elif name not in old:
            lines.append(f"field '{name}' {new[name]} was added")
        elif old[name] != new[name]:
            lines.append(f"field '{name}' is {new[name]}, was {old[name]}")
    return tuple(lines)


def refuse_changes(
    topic: str, known: tuple[int, Sequence[Column]], met: tuple[int, Sequence[Column]]
) -> None:
    """Stop at a schema whose fields differ from those that are known; both are id and fields.

    Raises:
        SchemaChanged: They do; says how.
    """
    changes = field_changes(known[1], met[1])
    if changes:
        raise SchemaChanged(
            f"the schema of '{topic}-value' has changed from id {known[0]} to id {met[0]}: "
            + ", ".join(changes),
            hint=f"set topics.{topic}.on_schema_change: ignore to read on without new fields, or "
            "add_nullable to take them in at the next start",
        )
