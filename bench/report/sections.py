"""Sections of the benchmark's page that are measured apart, and tables."""

import re
from collections.abc import Sequence

NEXMARK_HEADING = "## Nexmark"
PEERS_HEADING = "## Beside other engines"
_APART = (NEXMARK_HEADING, PEERS_HEADING)


def with_section(page: str, lines: Sequence[str]) -> str:
    """Return a page with a section, in the place of the one that has its heading, else at the end.

    Args:
        page: Markdown.
        lines: Of the section; the first one is its heading.
    """
    parts = _parts(page)
    section = "\n".join(lines).strip()
    headings = [part.partition("\n")[0] for part in parts]
    if lines[0] in headings:
        parts[headings.index(lines[0])] = section
    else:
        parts.append(section)
    return "\n\n".join(parts) + "\n"


def keeping_sections(page: str, known: str) -> str:
    """Return a page with those sections of the known one that are measured apart, and it lacks."""
    for part in _parts(known):
        lines = part.splitlines()
        if lines[0] in _APART and f"\n{lines[0]}\n" not in page:
            page = with_section(page, lines)
    return page


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table, whose numbers stand on the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return [*("| " + " | ".join(line) + " |" for line in lines), ""]


def _parts(page: str) -> list[str]:
    return [
        part for each in re.split(r"^(?=## )", page, flags=re.MULTILINE) if (part := each.strip())
    ]
