"""The items of a SELECT: fields of the value, and the key."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kaflow_engine.errors import SqlError
from kaflow_engine.model.lenses.grammar.syntax import (
    Cast,
    Everything,
    Expression,
    Field,
    Name,
    Projection,
    Query,
)
from kaflow_engine.model.lenses.lowering.expressions import aggregate_in, type_of, write
from kaflow_engine.model.lenses.lowering.fields import (
    MadeField,
    inside,
    refuse_overlaps,
    write_fields,
    write_struct,
)
from kaflow_engine.model.lenses.lowering.scope import FACETS, Input, Scope
from kaflow_engine.model.lenses.lowering.writer import Writer, quoted
from kaflow_engine.model.record_columns import KEY

WHOLE = "value"
"""The column that is a value as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """The items of a SELECT, by where they go."""

    values: tuple[MadeField | Everything, ...]
    key: Projection | None
    """`AS _key`."""
    key_fields: tuple[MadeField, ...]
    """`AS _key.a`."""
    whole: Projection | None
    """`AS _value`."""

    @property
    def key_offset(self) -> int | None:
        """Where a SELECT says what the key is; None: it does not."""
        if self.key is not None:
            return self.key.offset
        return self.key_fields[0].value.offset if self.key_fields else None


def items_of(query: Query, scope: Scope) -> Items:
    """Sort the items of a SELECT.

    Raises:
        SqlError: One goes nowhere, or two exclude each other.
    """
    values: list[MadeField | Everything] = []
    keys: list[Projection] = []
    fields: list[MadeField] = []
    wholes: list[Projection] = []
    for item in query.projections:
        facet = item.target[0].text if item.target else None
        if facet == "_key" and len(item.target) == 1:
            keys.append(item)
        elif facet == "_key":
            fields.append(MadeField(path=item.target[1:], value=_expression(item, scope)))
        elif facet == "_value" and len(item.target) == 1:
            wholes.append(item)
        elif facet == "_meta":
            hint = "topic, partition, offset and timestamp of output records are those of Kafka"
            raise _wrong(item.target[0], scope, "nothing can be written to '_meta'", hint)
        elif isinstance(item.value, Everything):
            values.append(item.value)
        else:
            values.append(MadeField(path=_path_of(item, scope), value=item.value))
    refuse_overlaps(fields, scope.source)
    refuse_overlaps((each for each in values if isinstance(each, MadeField)), scope.source)
    for extra in (*keys[1:], *wholes[1:]):
        text = f"'{extra.target[0].text}' is written twice"
        raise _wrong(extra.target[0], scope, text, "keep one of the two")
    if keys and fields:
        hint = "write AS _key for a key that is one value, AS _key.<field> for one with fields"
        raise _wrong(keys[0].target[0], scope, "the key is a value, and has fields, too", hint)
    if wholes and values:
        hint = "write AS _value alone, or AS <field> for each"
        raise _wrong(wholes[0].target[0], scope, "the value is one, and has fields, too", hint)
    return Items(
        values=tuple(values),
        key=keys[0] if keys else None,
        key_fields=tuple(fields),
        whole=wholes[0] if wholes else None,
    )


def write_items(
    items: Items, scope: Scope, out: Writer, *, default_key: bool, as_struct: bool, key_as: str
) -> None:
    """Write the items, the key behind the others.

    Args:
        items: What to write.
        scope: What names mean.
        out: Where to write.
        default_key: Whether the key of the record is written where the SELECT says no other.
        as_struct: Whether a key with fields is a struct; else it is a text of JSON.
        key_as: What the key is called.
    """

    def expression(node: Expression) -> None:
        write(node, scope, out)

    _write_columns(items.values, scope, out)
    separator = ", " if items.values else ""
    if items.whole is not None:
        expression(_expression(items.whole, scope))
        out.put(" AS ", quoted(WHOLE))
        separator = ", "
    if items.key is not None:
        out.put(separator)
        expression(_expression(items.key, scope))
    elif items.key_fields:
        out.put(separator, *([] if as_struct else ["to_json("]))
        write_struct(items.key_fields, out, expression)
        out.put(*([] if as_struct else [")"]))
    elif default_key and as_struct and scope.driving.shape.is_json_text:
        out.put(separator)
        write_struct(tuple(_key_fields_of(scope.driving, out.first)), out, expression)
    elif default_key:
        out.put(separator, scope.own_key())
    else:
        return
    out.put(" AS ", key_as if key_as == KEY else quoted(key_as))


def _write_columns(values: Iterable[MadeField | Everything], scope: Scope, out: Writer) -> None:
    for place, column in enumerate(_columns(values)):
        out.put(", " if place else "")
        if isinstance(column, Everything):
            out.at(column)
            _write_everything(column, scope, out)
        else:
            out.at(column[0].value)
            write_fields(column, out, lambda node: write(node, scope, out))
            out.put(" AS ", quoted(column[0].path[0].text))


def _columns(
    values: Iterable[MadeField | Everything],
) -> Iterator[Sequence[MadeField] | Everything]:
    """Yield what each column is made of: a field, or all that stands inside of it."""
    every = tuple(values)
    nested = dict(inside(each for each in every if isinstance(each, MadeField) and each.path[1:]))
    for each in every:
        if isinstance(each, Everything):
            yield each
        elif len(each.path) == 1:
            yield (each,)
        elif (together := nested.pop(each.folded[0], None)) is not None:
            yield together


def _path_of(item: Projection, scope: Scope) -> tuple[Name, ...]:
    """Return where a field of the value stands.

    Raises:
        SqlError: It has no name.
    """
    target = item.target[1:] if item.target and item.target[0].text == "_value" else item.target
    if target:
        return target
    if isinstance(item.value, Field):
        last = item.value.parts[-1]
        if last.text in FACETS:
            hint = f"write {item.written} AS <field>, or {item.written} AS {last.text}"
            raise _wrong(last, scope, f"'{item.written}' needs a name", hint)
        return (last,)
    return (Name(offset=item.offset, text=item.written),)


def key_shape(items: Items, scope: Scope) -> Mapping[str, str] | None:
    """Return the fields of the key of a SELECT's rows."""
    if items.key_fields:
        return {
            field.name: type_of(field.value.type, scope)
            if isinstance(field.value, Cast)
            else "VARCHAR"
            for field in items.key_fields
        }
    return None if items.key is not None else scope.driving.shape.key


def refuse_in_groups(items: Items, scope: Scope) -> None:
    """Refuse a key that is not the group's.

    Raises:
        SqlError: There is one.
    """
    if items.key_offset is not None:
        raise SqlError(
            "the key of a group is what it is grouped by",
            scope.source.place(items.key_offset),
            "remove AS _key",
        )


def refuse_aggregates(query: Query, scope: Scope) -> None:
    """Refuse aggregates where there are no groups.

    Raises:
        SqlError: There is one.
    """
    for item in query.projections:
        found = None if isinstance(item.value, Everything) else aggregate_in(item.value, scope)
        if found is not None:
            name = found.name.text.upper()
            raise _wrong(
                found.name, scope, f"{name} needs GROUP BY", "write GROUP BY _key, or other fields"
            )


def _expression(item: Projection, scope: Scope) -> Expression:
    if isinstance(item.value, Everything):
        raise SqlError("'*' is no key", scope.source.place(item.offset), "name one field")
    return item.value


def _write_everything(value: Everything, scope: Scope, out: Writer) -> None:
    names = [name.text for name in value.of]
    of = scope.input(names[0]) if names else None
    path = names[1:] if of is not None else names
    prefix = f"{quoted(of.called)}." if of is not None else ""
    if path in ([], ["_value"]):
        out.put(prefix, "*")
        return
    if path == ["_key"]:
        owner = of or scope.driving
        if owner.shape.key is None:
            hint = f"write {'.'.join(names)} AS <field>"
            raise _wrong(value.of[-1], scope, f"the key of '{owner.name.text}' has no fields", hint)
        _write_columns(_key_fields_of(owner, value.offset), scope, out)
        return
    text = ".".join([*names, "*"])
    raise _wrong(
        value.of[0], scope, f"'{text}' means nothing here", "write *, <source>.* or _key.*"
    )


def _key_fields_of(of: Input, offset: int) -> Iterator[MadeField]:
    """Yield the fields of a key, each as one of the value."""
    for name in of.shape.key or ():
        path = tuple(Name(offset=offset, text=part) for part in name.split("."))
        key = (Name(offset=offset, text=of.called), Name(offset=offset, text="_key"))
        yield MadeField(path=path, value=Field(offset=offset, parts=(*key, *path)))


def _wrong(name: Name, scope: Scope, message: str, hint: str) -> SqlError:
    return SqlError(message, scope.source.place(name.offset), hint)
