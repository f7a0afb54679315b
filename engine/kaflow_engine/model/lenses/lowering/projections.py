"""The items of a SELECT: fields of the value, and the key."""

from collections.abc import Mapping
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
from kaflow_engine.model.lenses.lowering.scope import FACETS, Scope
from kaflow_engine.model.lenses.lowering.writer import Writer, quoted

WHOLE = "value"
"""The column that is a value as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyField:
    """A field of the key that a SELECT makes."""

    offset: int
    name: str
    value: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """The items of a SELECT, by where they go."""

    values: tuple[Projection, ...]
    key: Projection | None
    """`AS _key`."""
    key_fields: tuple[KeyField, ...]
    """`AS _key.a`."""
    whole: Projection | None
    """`AS _value`."""

    @property
    def makes_key(self) -> bool:
        """Whether a SELECT says what the key is."""
        return self.key is not None or bool(self.key_fields)


def items_of(query: Query, scope: Scope) -> Items:
    """Sort the items of a SELECT.

    Raises:
        SqlError: One goes nowhere, or two exclude each other.
    """
    values: list[Projection] = []
    keys: list[Projection] = []
    fields: list[KeyField] = []
    wholes: list[Projection] = []
    for item in query.projections:
        facet = item.target[0].text if item.target else None
        if facet == "_key" and len(item.target) == 1:
            keys.append(item)
        elif facet == "_key":
            fields.append(_key_field(item, scope))
        elif facet == "_value" and len(item.target) == 1:
            wholes.append(item)
        elif facet == "_meta":
            hint = "topic, partition, offset and timestamp of output records are those of Kafka"
            raise _wrong(item.target[0], scope, "nothing can be written to '_meta'", hint)
        else:
            values.append(item)
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


def write_items(items: Items, scope: Scope, out: Writer, *, default_key: bool) -> None:
    """Write the items, the key behind the others.

    Args:
        items: What to write.
        scope: What names mean.
        out: Where to write.
        default_key: Whether the key of the record is written where the SELECT says no other.
    """
    first = True
    for item in (*items.values, *([items.whole] if items.whole else [])):
        if not first:
            out.put(", ")
        first = False
        out.at(item)
        if isinstance(item.value, Everything):
            _write_everything(item.value, scope, out)
        else:
            write(item.value, scope, out)
            out.put(" AS ", quoted(WHOLE if item is items.whole else name_of(item, scope)))
    separator = "" if first else ", "
    if items.key is not None:
        out.put(separator)
        _only_expression(items.key, scope)
        assert not isinstance(items.key.value, Everything)
        write(items.key.value, scope, out)
        out.put(" AS _key")
    elif items.key_fields:
        out.put(separator, "to_json(struct_pack(")
        for place, field in enumerate(items.key_fields):
            out.put(", " if place else "", quoted(field.name), " := ")
            write(field.value, scope, out)
        out.put(")) AS _key")
    elif default_key:
        out.put(separator, scope.own_key(), " AS _key")


def name_of(item: Projection, scope: Scope) -> str:
    """Return the name of a field of the value.

    Raises:
        SqlError: It has none, or is a field of a field.
    """
    target = item.target[1:] if item.target and item.target[0].text == "_value" else item.target
    if len(target) > 1:
        text = ".".join(part.text for part in target)
        hint = f"write AS {target[-1].text}: fields of the value stand side by side"
        raise _wrong(target[0], scope, f"'{text}' is a field inside of a field", hint)
    if target:
        return target[0].text
    if isinstance(item.value, Field):
        last = item.value.parts[-1]
        if last.text in FACETS:
            hint = f"write {item.written} AS <field>, or {item.written} AS {last.text}"
            raise _wrong(last, scope, f"'{item.written}' needs a name", hint)
        return last.text
    return item.written


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
    said = items.key or next(iter(items.key_fields), None)
    if said is not None:
        raise SqlError(
            "the key of a group is what it is grouped by",
            scope.source.place(said.offset),
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


def _key_field(item: Projection, scope: Scope) -> KeyField:
    _only_expression(item, scope)
    assert not isinstance(item.value, Everything)
    facet, name, *deeper = item.target
    if deeper:
        text = ".".join(part.text for part in item.target)
        hint = f"write AS _key.{deeper[-1].text}"
        raise _wrong(facet, scope, f"'{text}' is a field inside of a field", hint)
    return KeyField(offset=item.offset, name=name.text, value=item.value)


def _only_expression(item: Projection, scope: Scope) -> None:
    if isinstance(item.value, Everything):
        raise SqlError("'*' is no key", scope.source.place(item.offset), "name one field")


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
        fields = [f"{scope.key_field(n, owner)} AS {quoted(n)}" for n in owner.shape.key]
        out.put(", ".join(fields))
        return
    text = ".".join([*names, "*"])
    raise _wrong(
        value.of[0], scope, f"'{text}' means nothing here", "write *, <source>.* or _key.*"
    )


def _wrong(name: Name, scope: Scope, message: str, hint: str) -> SqlError:
    return SqlError(message, scope.source.place(name.offset), hint)
