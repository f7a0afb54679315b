"""The text of a file with `serve` → what is served: Jinja, YAML, keys, and rules between them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.masking import remember, remember_settings
from kaflow_engine.model.files.reading import build, check_keys
from kaflow_engine.model.files.shapes import Shape
from kaflow_engine.model.files.tree import Entries, describe
from kaflow_engine.model.files.yaml_file import in_order, raise_all
from kaflow_engine.model.sqlflow.lowering.commands import Attached, read_commands
from kaflow_engine.model.sqlflow.lowering.said import Mistakes, Placed
from kaflow_engine.model.sqlflow.reading import template_of_yaml
from kaflow_engine.model.sqlflow.serving.rules import broken_rules
from kaflow_engine.model.sqlflow.serving.specs import ServeFileSpec

_SHAPE = Shape(noun="key", later={})


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeFile(Placed):
    """A file that is right, but for the SQL in it."""

    spec: ServeFileSpec
    attached: Mapping[str, Attached]
    """Databases by the name that SQL has for them, in lower case."""
    tokens: Mapping[str, str]
    """Who may ask → how they show it."""


def read_serve_file(
    path: Path, text: str, environment: Mapping[str, str], secrets: Mapping[str, str]
) -> ServeFile:
    """Read a file; its passwords and tokens are masked from now on.

    Args:
        path: Where it stands.
        text: What it says.
        environment: Variables that it may use.
        secrets: Those of the configuration.

    Raises:
        ModelError: Something in it is wrong.
        Problems: Several things are.
    """
    document = template_of_yaml(path, text, environment)
    root = document.root
    if not isinstance(root, Entries):
        raise ModelError(f"expected a mapping, found {describe(root)}", root.at)
    checked = check_keys(root, ServeFileSpec, _SHAPE)
    built = build(checked.tree, ServeFileSpec, _SHAPE, {})
    found = [*document.mistakes, *checked.mistakes]
    if not isinstance(built, ServeFileSpec):
        raise_all(in_order([*found, *built]))
        raise AssertionError
    assert isinstance(checked.tree, Entries)
    said = Placed(tree=checked.tree, file=path, start=Location(str(path), 1))
    mistakes = Mistakes(found=found)
    commands = read_commands(said, len(built.commands), mistakes)
    for name, at in commands.made.values():
        mistakes.add(
            f"the table '{name}' is not served",
            at,
            "read the file in the SQL of the data set, or put its rows into a database",
        )
    for database in commands.attached.values():
        remember_settings({"url": database.where})
    tokens = {each.name: each.token or secrets.get(each.secret or "", "") for each in
              built.serve.auth.tokens}  # fmt: skip
    remember(tokens.values())
    mistakes.found += broken_rules(built.serve, said, tokens, secrets)
    raise_all(in_order(mistakes.found))
    return ServeFile(
        spec=built,
        tree=said.tree,
        file=path.resolve(),
        start=said.start,
        attached=commands.attached,
        tokens=tokens,
    )
