"""SQL of models that others inline."""

import re

_PIECES = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|(?:--[^\n]*|/\*.*?\*/|\s)+""",
    re.DOTALL,
)


def one_line(sql: str) -> str:
    """Write SQL without line ends and comments: what inlines it keeps its own lines."""

    def plain(piece: re.Match[str]) -> str:
        return piece[0] if piece[0][0] in "'\"" else " "

    return _PIECES.sub(plain, sql).strip().removesuffix(";").rstrip()
