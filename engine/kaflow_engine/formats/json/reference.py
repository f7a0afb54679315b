"""Reference decoder for JSON, one value at a time: the bulk decoder must agree with it."""

import base64
import binascii
import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time
from decimal import ROUND_HALF_UP, Context, InvalidOperation
from decimal import Decimal as Exact
from functools import lru_cache
from typing import Any, NoReturn, assert_never, cast
from uuid import UUID

from kaflow_engine.duck import queries
from kaflow_engine.duck.wide.integers import NotWhole, is_wide, number_of
from kaflow_engine.formats.decoded import Unreadable, shown
from kaflow_engine.formats.json.as_text import Number, to_text
from kaflow_engine.formats.json.deep import texts_of_fields
from kaflow_engine.formats.types import (
    INTEGERS,
    Decimal,
    List,
    Map,
    Scalar,
    Struct,
    Type,
    parse_type,
    type_text,
)
from kaflow_engine.model.columns import Column

_SOME = r"\d(?:_?\d)*"
_NUMBER = re.compile(
    rf"\s*\+?(-?(?:{_SOME}\.?(?:{_SOME})?|\.{_SOME})(?:[eE][+-]?\d(?:_?\d){{,8}})?)\s*"
)
"""A number as DuckDB reads it from a string."""
_INSTANT = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,9}))?\s?(Z|[+-]\d\d(?::?\d\d)?)?)?"
)
_DIGITS = Context(prec=400, rounding=ROUND_HALF_UP, Emax=10**9, Emin=-(10**9))


Read = Callable[[Any, str], object]


def read_object(text: str, columns: Sequence[Column]) -> list[object]:
    """Return the Python value of each column; raise Unreadable when there is none."""
    try:
        try:
            found = _parsed_json(text)
        except RecursionError:
            found = _of_columns(text, columns)
        if "\\ud" in text or "\\uD" in text:
            to_text(found).encode()
        if not isinstance(found, dict):
            raise not_an_object(text)
        fields = cast(dict[str, Any], found)
        return [_cell(_reader(parse_type(c.type)), fields.get(c.name), c.name) for c in columns]
    except RecursionError:
        raise Unreadable("InvalidJson", "the value is nested too deeply") from None
    except UnicodeEncodeError:
        raise Unreadable("InvalidJson", f"half a surrogate pair: {shown(text)}") from None
    except ValueError as error:
        raise Unreadable(
            "InvalidJson", f"the value is not valid JSON: {error}: {shown(text)}"
        ) from None


def _parsed_json(text: str) -> Any:
    return json.loads(
        text,
        parse_int=_integer,
        parse_float=Number,
        parse_constant=_no_constant,
        object_pairs_hook=_first_wins,
    )


def _of_columns(text: str, columns: Sequence[Column]) -> Any:
    """Parse what columns ask for; other fields may be nested as deeply as they like."""
    if not queries.value("SELECT json_valid(?)", [text]):
        raise ValueError("it breaks off, or closes what it did not open")
    if not text.lstrip().startswith("{"):
        raise not_an_object(text)
    found = texts_of_fields(text)
    return {c.name: _parsed_json(found[c.name]) for c in columns if c.name in found}


def not_an_object(text: str) -> Unreadable:
    """Return the mistake of a value that is JSON, but no object."""
    return Unreadable("NotAnObject", f"the value is not a JSON object: {shown(text)}")


def _cell(read: Read, value: object, path: str) -> object:
    return None if value is None else read(value, path)


@lru_cache(maxsize=1024)
def _reader(kind: Type) -> Read:
    match kind:
        case Struct(fields=fields):
            return _struct([(name, _reader(child)) for name, child in fields], kind)
        case List(element=element):
            return _list(_reader(element), kind)
        case Map(key=key, value=value):
            return _map(_reader(key), _reader(value), kind)
        case Decimal():
            return _decimal(kind)
        case Scalar(name=name) if is_wide(name):
            return _wide(kind)
        case Scalar(name=name) if name in INTEGERS:
            return _whole(kind, *INTEGERS[name])
        case Scalar(name=name):
            return _SCALARS.get(name) or _other(kind)
        case _:
            assert_never(kind)


def _struct(fields: Sequence[tuple[str, Read]], kind: Type) -> Read:
    def read(value: Any, path: str) -> object:
        if not isinstance(value, dict):
            _refuse(value, kind, path)
        found = cast(dict[str, Any], value)
        return {name: _cell(of, found.get(name), f"{path}.{name}") for name, of in fields}

    return read


def _list(element: Read, kind: Type) -> Read:
    def read(value: Any, path: str) -> object:
        if not isinstance(value, list):
            _refuse(value, kind, path)
        found = cast(list[Any], value)
        return [_cell(element, item, f"{path}[{at}]") for at, item in enumerate(found)]

    return read


def _map(key: Read, item: Read, kind: Type) -> Read:
    def read(value: Any, path: str) -> object:
        if not isinstance(value, dict):
            _refuse(value, kind, path)
        found = cast(dict[str, Any], value)
        return [(key(k, path), _cell(item, v, f"{path}.{k}")) for k, v in found.items()]

    return read


def _decimal(kind: Decimal) -> Read:
    unit, limit = Exact(1).scaleb(-kind.scale), Exact(10) ** (kind.precision - kind.scale)

    def read(value: Any, path: str) -> object:
        number = _number(value, kind, path)
        try:
            rounded = number.quantize(unit, context=_DIGITS)
        except InvalidOperation:
            _refuse(value, kind, path)
        if abs(rounded) >= limit:
            _refuse(value, kind, path)
        return rounded

    return read


def _whole(kind: Scalar, least: int, greatest: int) -> Read:
    wide = "HUGEINT" in kind.name

    def read(value: Any, path: str) -> object:
        number = _number(value, kind, path)
        if not least <= number <= greatest or number != number.to_integral_value(context=_DIGITS):
            _refuse(value, kind, path)
        return Exact(int(number)) if wide else int(number)

    return read


def _wide(kind: Scalar) -> Read:
    """Read digits, also hexadecimal ones: the text of the number, which Arrow carries."""

    def read(value: Any, path: str) -> object:
        if not isinstance(value, str):
            _refuse(value, kind, path)
        try:
            return str(number_of(value, kind.name))
        except NotWhole:
            _refuse(value, kind, path)

    return read


def _number(value: Any, kind: Type, path: str) -> Exact:
    found = _NUMBER.fullmatch(value) if isinstance(value, str) else None
    return Exact(found[1]) if found is not None else _refuse(value, kind, path)


def _double(value: Any, path: str) -> object:
    found = float(_number(value, Scalar("DOUBLE"), path))
    return found if abs(found) != float("inf") else _refuse(value, Scalar("DOUBLE"), path)


def _float(value: Any, path: str) -> object:
    found = float(_number(value, Scalar("FLOAT"), path))
    return found if abs(found) < 3.4028235677973366e38 else _refuse(value, Scalar("FLOAT"), path)


def _boolean(value: Any, path: str) -> object:
    if value is True or value is False:
        return value
    if value in ("true", "false"):
        return value == "true"
    return _refuse(value, Scalar("BOOLEAN"), path)


def _text(value: Any, path: str) -> object:
    return value if type(value) is str else to_text(value)


def _instant(kind: Scalar, aware: bool) -> Read:
    def read(value: Any, path: str) -> object:
        match = _INSTANT.fullmatch(_string(value, kind, path).strip())
        if match is None:
            _refuse(value, kind, path)
        day, clock, fraction, zone = match.groups()
        zone = (zone or "Z").replace("Z", "+00:00")
        micros = (fraction or "").ljust(6, "0")[:6]
        try:
            found = datetime.fromisoformat(f"{day}T{clock or '00:00'}{zone}").astimezone(UTC)
        except (ValueError, OverflowError):
            _refuse(value, kind, path)
        return found.replace(microsecond=int(micros), tzinfo=UTC if aware else None)

    return read


def _parsed(kind: Scalar, parse: Callable[[str], object]) -> Read:
    def read(value: Any, path: str) -> object:
        try:
            return parse(_string(value, kind, path))
        except (ValueError, binascii.Error):
            _refuse(value, kind, path)

    return read


def _other(kind: Scalar) -> Read:
    def read(value: Any, path: str) -> object:
        text = value if type(value) is str and kind.name != "JSON" else to_text(value)
        found = queries.value(f"SELECT TRY_CAST(? AS {kind.name})", [text])
        return _refuse(value, kind, path) if found is None else found

    return read


def _string(value: Any, kind: Type, path: str) -> str:
    return value if type(value) is str else _refuse(value, kind, path)


def _refuse(value: Any, kind: Type, path: str) -> NoReturn:
    text = shown(to_text(value))
    raise Unreadable("WrongType", f"column '{path}': {text} is not a {type_text(kind)}")


def _integer(text: str) -> Number:
    return Number("0" if text == "-0" else text)


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON value")


def _first_wins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else dict(reversed(pairs))


_SCALARS: dict[str, Read] = {
    "VARCHAR": _text,
    "BOOLEAN": _boolean,
    "DOUBLE": _double,
    "FLOAT": _float,
    "TIMESTAMP": _instant(Scalar("TIMESTAMP"), aware=False),
    "TIMESTAMP WITH TIME ZONE": _instant(Scalar("TIMESTAMP WITH TIME ZONE"), aware=True),
    "DATE": _parsed(Scalar("DATE"), date.fromisoformat),
    "TIME": _parsed(Scalar("TIME"), time.fromisoformat),
    "UUID": _parsed(Scalar("UUID"), lambda text: str(UUID(text))),
    "BLOB": _parsed(Scalar("BLOB"), lambda text: base64.b64decode(text, validate=True)),
}
