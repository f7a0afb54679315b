"""Texts of databases as JSON, from which columns are read."""

import json


def text_as_json(text: str, kind: str) -> str:
    """Return a text as JSON: itself where a column here takes JSON, and it is some.

    >>> text_as_json('{"a": 1}', "JSON"), text_as_json("[1,2]", "INTEGER[]")
    ('{"a": 1}', '[1,2]')
    >>> text_as_json("{", "JSON"), text_as_json("ü", "VARCHAR")
    ('"{"', '"ü"')
    """
    takes_json = kind == "JSON" or kind.endswith("]") or kind.startswith(("STRUCT", "MAP"))
    return text if takes_json and _is_json(text) else json.dumps(text, ensure_ascii=False)


def _is_json(text: str) -> bool:
    try:
        json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    return True


def _refuse(word: str) -> None:
    raise ValueError(word)
