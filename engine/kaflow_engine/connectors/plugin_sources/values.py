"""Rows of plugins as the values of records."""

import base64
import json
import math
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, cast
from uuid import UUID

from kaflow_engine.connectors.sources.plugin_contract import Row
from kaflow_engine.errors import SourceUnfit


def value_of(row: Row, called: str) -> bytes:
    """Return a row as JSON.

    Args:
        row: What a plugin gave.
        called: The source, as errors name it.

    Raises:
        SourceUnfit: It is no row, or has a value that JSON has no form for.
    """
    if isinstance(row, bytes):
        return row
    if not isinstance(cast(object, row), Mapping):
        raise SourceUnfit(
            f"{called} gave a row that is no mapping of columns: {type(row).__name__}",
            hint="correct the plugin: rows are mappings such as {'id': 1}",
        )
    try:
        try:
            text = json.dumps(row, default=_plain, allow_nan=False)
        except ValueError:
            text = json.dumps(_finite(dict(row)), default=_plain)
    except TypeError as error:
        raise SourceUnfit(
            f"{called} gave a value without a form in JSON: {error}",
            hint="correct the plugin: give texts, numbers, dates, bytes, lists and mappings",
        ) from error
    return text.encode()


def _plain(value: object) -> object:
    match value:
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal() | UUID():
            return str(value)
        case bytes() | bytearray():
            return base64.b64encode(value).decode()
        case Mapping():
            return dict(cast(Mapping[str, object], value))
        case _:
            raise TypeError(f"{type(value).__name__} of a row")


def _finite(value: Any) -> Any:
    """Return a value with NULL for what JSON has no number for."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _finite(each) for name, each in cast(Mapping[str, Any], value).items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in cast(list[Any], value)]
    return value
