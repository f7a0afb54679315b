"""The code blocks of a page of the documentation."""
# pyright: basic

import re
from pathlib import Path

DOCS = Path(__file__).parent.parent / "engine" / "docs"


def blocks(kind: str, *pages: str) -> list[str]:
    """Return the blocks of a language in pages of `engine/docs`."""
    texts = [DOCS.joinpath(page).read_text() for page in pages]
    pattern = re.compile(rf"^```{kind}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    return [block for text in texts for block in pattern.findall(text)]


def commands(*pages: str) -> list[str]:
    """Return the commands of blocks for a shell, a line each, without what they say."""
    lines = [line for block in blocks("sh", *pages) for line in block.splitlines()]
    typed = [line for block in blocks("console", *pages) for line in block.splitlines()]
    lines += [line.removeprefix("$ ") for line in typed if line.startswith("$ ")]
    return [line.partition(" #")[0].strip() for line in lines if line.strip()]


def first_words(*words: str) -> list[str]:
    """Return the commands of the operations page that begin with these words."""
    begin = [*words]
    return [c for c in commands("operations.md") if c.split()[: len(begin)] == begin]
