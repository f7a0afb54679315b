"""The fields of JSON objects that are nested more deeply than Python's parser goes."""

import json
import re

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]', re.DOTALL)


def texts_of_fields(text: str) -> dict[str, str]:
    """Return the JSON text of each field of a valid object; of a repeated one the first counts."""
    found: dict[str, str] = {}
    depth, start, name = 0, 0, None
    for token in _TOKEN.finditer(text):
        kind = token[0]
        if kind in ("}", "]"):
            depth -= 1
        if name is not None and (depth == 0 or (depth == 1 and kind == ",")):
            found.setdefault(name, text[start : token.start()])
            name = None
        if depth == 1 and kind == ":":
            name = json.loads(text[start : token.start()])
        if kind in ("{", "["):
            depth += 1
        if depth == 1 and kind in ("{", ",", ":"):
            start = token.end()
    return found
