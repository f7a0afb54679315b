"""Fields that a SELECT writes inside of fields: `AS a.b`, `AS _key.a.b`."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from kaflow_engine.errors import SqlError
from kaflow_engine.model.lenses.grammar.source_text import SourceText
from kaflow_engine.model.lenses.grammar.syntax import Expression, Name
from kaflow_engine.model.lenses.lowering.writer import Writer, quoted


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeField:
    """A field that a SELECT makes, and where it stands."""

    path: tuple[Name, ...]
    """Its name behind those of the fields in which it stands."""
    value: Expression

    @property
    def name(self) -> str:
        """The path with dots."""
        return ".".join(part.text for part in self.path)

    @property
    def folded(self) -> tuple[str, ...]:
        """The path as it is compared with others."""
        return tuple(part.text.lower() for part in self.path)


def inside(fields: Iterable[MadeField]) -> Iterator[tuple[str, list[MadeField]]]:
    """Yield the outermost names of fields, each with what stands there, in their order."""
    found: dict[str, list[MadeField]] = {}
    for field in fields:
        found.setdefault(field.folded[0], []).append(field)
    for together in found.values():
        yield together[0].path[0].text, together


def write_fields(
    fields: Sequence[MadeField], out: Writer, write: Callable[[Expression], None]
) -> None:
    """Write the value of fields with one outermost name: theirs, or a struct of what is inside.

    Args:
        fields: The fields.
        out: Where to write.
        write: Writes the expression of one.
    """
    if len(fields[0].path) == 1:
        write(fields[0].value)
        return
    write_struct([MadeField(path=each.path[1:], value=each.value) for each in fields], out, write)


def write_struct(
    fields: Sequence[MadeField], out: Writer, write: Callable[[Expression], None]
) -> None:
    """Write a struct of fields, of which some may stand inside of others."""
    out.put("struct_pack(")
    for place, (name, together) in enumerate(inside(fields)):
        out.put(", " if place else "", quoted(name), " := ")
        write_fields(together, out, write)
    out.put(")")


def refuse_overlaps(fields: Iterable[MadeField], source: SourceText) -> None:
    """Refuse fields that are in each other's place.

    Raises:
        SqlError: There are some.
    """
    for first, second in combinations(fields, 2):
        short, long = sorted((first.folded, second.folded), key=len)
        if long[: len(short)] != short or len(long) == 1:
            continue
        at = source.place(second.path[0].offset)
        if short == long:
            raise SqlError(f"'{second.name}' is written twice", at, "keep one of the two")
        name = min((first, second), key=lambda field: len(field.path)).name
        hint = "write AS <field> for one value, or AS <field>.<field> for each of several"
        raise SqlError(f"'{name}' is a value, and has fields, too", at, hint)
