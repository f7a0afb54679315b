"""The page with the keys of every kind, as `kaflow config keys --markdown` writes it."""

from collections.abc import Iterator, Sequence

from kaflow_engine.model.reference.keys import Key, Kind, Section

TITLES: dict[Section, str] = {
    "sources": "Sources",
    "outputs": "Outputs",
    "relations": "Relations",
    "connections": "Connections",
}
_ABOUT: dict[Section, str] = {
    "sources": "Below `sources:` of a pipeline file, each under the name that queries call it.",
    "outputs": "Of `output:`, and of each of `outputs:`.",
    "relations": "Below `relations:`; those that are queries have no `type`.",
    "connections": "Below `<type>.connections` of the configuration, each under its name.",
}
_HEAD = """# Keys of sources, outputs, relations and connections

Written by `kaflow config keys --markdown` from what files are checked against; `kaflow config keys
TYPE` prints those of one kind. What each kind promises stands on [its page](connectors.md). A
duration is `500ms`, `30s`, `5m` or `1h30m`.
"""


def page_of(kinds: Sequence[Kind]) -> str:
    """Return the page of all kinds."""
    return "\n".join([_HEAD, *_sections(kinds)])


def _sections(kinds: Sequence[Kind]) -> Iterator[str]:
    for section, title in TITLES.items():
        yield f"## {title}\n\n{_ABOUT[section]}\n"
        for kind in kinds:
            if kind.section == section:
                yield from _kind(kind)


def _kind(kind: Kind) -> Iterator[str]:
    called = "All of them" if kind.type == "all" else f"`{kind.type}` of {kind.section}"
    yield f"### {called}\n\n{kind.about}\n"
    if kind.keys:
        yield "| key | takes | default | meaning |\n|---|---|---|---|"
        yield from map(_row, kind.keys)
        yield ""


def _row(key: Key) -> str:
    default = "required" if key.is_required else f"`{key.default}`" if key.default else ""
    cells = (f"`{key.name}`", key.takes, default, key.about)
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
