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
        if not isinstance(entry.value, Entries):
            continue
        match text_at(entry.value, "type"):
            case "script":
                yield from _of_script(tree, ("relations", entry.key), entry.value)
            case "handler":
                yield from _of_handler(tree, ("relations", entry.key), entry.value)
            case _:
                pass  # an unknown type is reported where it is read


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


def _of_handler(tree: Entries, path: Path, handler: Entries) -> Iterator[ModelError]:
    if is_said(handler, "op_column") and text_at(handler, "envelope") != "metadata":
        yield ModelError(
            f"'op_column' of '{brief(str(path[-1]))}' is of an envelope",
            place(tree, (*path, "op_column")),
            "add envelope: metadata",
        )
    plain, secret = handler.get("headers"), handler.get("secret_headers")
    if not isinstance(plain, Entries) or not isinstance(secret, Entries):
        return
    known = {entry.key.lower() for entry in plain.entries}
    for name in (entry.key for entry in secret.entries if entry.key.lower() in known):
        yield ModelError(
            f"the handler '{brief(str(path[-1]))}' has the header '{brief(name)}' twice",
            place(tree, (*path, "secret_headers", name)),
            "keep one of them",
        )
