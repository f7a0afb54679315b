"""Whether numbers of fields keep their meaning: readers with an older schema know numbers only."""

from dataclasses import dataclass

from google.protobuf.descriptor import Descriptor

from kaflow_engine.formats.protobuf.compile import file_of


@dataclass(frozen=True, slots=True)
class MovedField:
    """A number that means another field than before."""

    number: int
    before: str
    after: str


def moved_field(before: str, after: str) -> MovedField | None:
    """Return the first field of `before` whose number has another name in `after`; None: none.

    A number that is in one of them only is as it should be: a field was added at the end, or left.

    Raises:
        ModelError: One of them is no Protobuf schema.
    """
    old, new = (list(file_of(text).message_types_by_name.values())[:1] for text in (before, after))
    return _moved(old[0], new[0]) if old and new else None


def _moved(before: Descriptor, after: Descriptor) -> MovedField | None:
    numbers = {field.number: field for field in after.fields}
    for field in before.fields:
        other = numbers.get(field.number)
        if other is None:
            continue
        if other.name != field.name:
            return MovedField(field.number, field.full_name, other.full_name)
        inner, its = field.message_type, other.message_type
        if inner is None or its is None or inner.full_name == before.full_name:
            continue
        found = _moved(inner, its)
        if found is not None:
            return found
    return None
