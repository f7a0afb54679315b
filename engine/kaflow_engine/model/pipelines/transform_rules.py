"""What is wrong with the keys of transforms, although every value alone is right."""

from collections.abc import Iterator

from kaflow_engine.errors import ModelError
from kaflow_engine.model.files.mistakes import place
from kaflow_engine.model.files.tree import Entries, brief, text_at
from kaflow_engine.model.pipelines.table_rules import is_said
from kaflow_engine.model.spec import Path


def keys_of_transforms(tree: Entries) -> Iterator[ModelError]:
    """What a kind of transform needs is said once."""
    relations = tree.get("relations")
    for entry in relations.entries if isinstance(relations, Entries) else ():
        if isinstance(entry.value, Entries) and text_at(entry.value, "type") == "script":
            yield from _of_script(tree, ("relations", entry.key), entry.value)


def _of_script(tree: Entries, path: Path, script: Entries) -> Iterator[ModelError]:
    name = brief(str(path[-1]))
    said = [key for key in ("script", "file") if is_said(script, key)]
    if len(said) == 2:
        yield ModelError(
            f"the script '{name}' has both script and file",
            place(tree, (*path, "file")),
            "keep one of them",
        )
    elif not said and not {"script", "file"} & script.misspelled:
        yield ModelError(
            f"the script '{name}' has no text",
            place(tree, path),
            "add script: | and below it function process(row) { … return row }; or file: <path>",
        )
