"""Fields that a script sets beside those it is given, as far as its text shows them."""

import re
from collections.abc import Mapping

_COMMENT = re.compile(
    r"""('(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`)|//[^\n]*|/\*.*?\*/""", re.DOTALL
)
"""A text, which stays, or a comment."""
_FUNCTION = re.compile(r"function\s+(?:process|invoke)\s*\(\s*([A-Za-z_$][\w$]*)")
_TEXT = re.compile(r"""['"`]|\bString\(|\.toString\(|JSON\.stringify\(""")
_COMPARED = re.compile(r"^\s*(?:!|true\b|false\b)|[=!]==?|[<>]=?|\bBoolean\(")
_NUMBER = re.compile(r"^\s*-?\d[\d_.eE]*\s*$|\bMath\.|\bNumber\(|\.length\b|[-*/%]|\+\s*\d")


def fields_set(script: str) -> Mapping[str, str]:
    """Return the fields that a script sets before it reads them, with the types that their first
    values have; a column of that name that comes in keeps its own.

    >>> fields_set("function process(x) { x.risk = x.a > 9 ? 'high' : 'low'; x.a = x.a + 1 }")
    {'risk': 'VARCHAR'}
    >>> fields_set("function process(x) { x.a = '//' // x.b = 1")
    {'a': 'VARCHAR'}
    """
    script = _without_comments(script)
    found = _FUNCTION.search(script)
    if found is None:
        return {}
    row = re.escape(found[1])
    use = re.compile(
        rf"(?<![\w$.]){row}(?:\.([A-Za-z_$][\w$]*)|\[\s*(?:'([^']+)'|\"([^\"]+)\")\s*\])"
        r"(\s*=(?![=>])\s*([^;\n]+))?"
    )
    first: dict[str, str | None] = {}
    for each in _uses(use, script):
        first.setdefault(*each)
    return {name: _type(value) for name, value in first.items() if value is not None}


def _uses(use: re.Pattern[str], text: str) -> "list[tuple[str, str | None]]":
    """Return the names that are used, in order: with the value where one is set.

    What a value reads is read before it is set.
    """
    found: list[tuple[str, str | None]] = []
    for each in use.finditer(text):
        name, value = each[1] or each[2] or each[3], each[5]
        if value is not None:
            found += _uses(use, value)
        found.append((name, value))
    return found


def _type(value: str) -> str:
    chosen = value.partition("?")[2].partition(":")[0] if re.search(r"\?[^.?]", value) else value
    if _TEXT.search(chosen):
        return "VARCHAR"
    if _COMPARED.search(chosen):
        return "BOOLEAN"
    return "DOUBLE" if _NUMBER.search(chosen) else "JSON"


def line_of(script: str, field: str) -> int:
    """Return the line, from 1, at which a script sets a field first.

    >>> line_of("function process(x) {\\n  x.risk = 1\\n}", "risk")
    2
    """
    name, script = re.escape(field), _without_comments(script)
    found = re.search(rf"(?:\.{name}|\[\s*['\"]{name}['\"]\s*\])\s*=(?![=>])", script)
    return 1 if found is None else script.count("\n", 0, found.start()) + 1


def _without_comments(script: str) -> str:
    """Return a script whose comments are gone, in the same lines.

    >>> _without_comments("a = '//' // x.b = 1")
    "a = '//' "
    """
    return _COMMENT.sub(lambda found: found[1] or "\n" * found[0].count("\n"), script)
