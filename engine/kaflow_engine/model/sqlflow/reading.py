"""The text of a SQLFlow file → a pipeline: Jinja, YAML, its keys, and what they are lowered to."""

import re
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.model.brought.nodes import FileMetrics
from kaflow_engine.model.files.reading import build, check_keys
from kaflow_engine.model.files.templates import rendered
from kaflow_engine.model.files.tree import Entries, describe
from kaflow_engine.model.files.yaml_file import Document, in_order, parse_yaml
from kaflow_engine.model.pipelines.contract import Surroundings
from kaflow_engine.model.pipelines.loader import Reading, read_pipeline
from kaflow_engine.model.sqlflow.lowering.program import lower_file
from kaflow_engine.model.sqlflow.lowering.said import Said
from kaflow_engine.model.sqlflow.specs import SHAPE, SqlflowSpec

_FOLDERS = {
    "STATIC_ROOT": ("SQLFLOW_STATIC_ROOT", "/tmp/sqlflow/static"),
    "SQL_RESULTS_CACHE_DIR": ("SQLFLOW_SQL_RESULTS_CACHE_DIR", "/tmp/sqlflow/resultscache"),
}
"""Variables that each file has, with the one of the environment that sets it."""


def read_sqlflow(path: Path, text: str, around: Surroundings) -> Reading:
    """Read a file.

    Args:
        path: Where it stands.
        text: What it says.
        around: What it may refer to.

    Raises:
        ModelError: It is no template, or no YAML.
    """
    document = template_of_yaml(path, text, around.environment)
    root = document.root
    start = Location(str(path), 1)
    if not isinstance(root, Entries):
        mistake = ModelError(f"expected a mapping, found {describe(root)}", root.at)
        return Reading(at=start, mistakes=(*document.mistakes, mistake))
    checked = check_keys(root, SqlflowSpec, SHAPE)
    built = build(checked.tree, SqlflowSpec, SHAPE, {})
    mistakes = [*document.mistakes, *checked.mistakes]
    if not isinstance(built, SqlflowSpec):
        return Reading(at=start, mistakes=in_order([*mistakes, *built]))
    assert isinstance(checked.tree, Entries)
    said = Said(spec=built, tree=checked.tree, file=path, start=start)
    lowered = lower_file(said, around.function_kind)
    mistakes += lowered.mistakes
    if mistakes:
        return Reading(at=start, name=lowered.name, mistakes=in_order(mistakes))
    reading = read_pipeline(Document(root=lowered.tree, mistakes=()))
    more = {"brought": lowered.brought, "file_metrics": FileMetrics(of_pipelines="sqlflow")}
    spec = reading.spec and reading.spec.model_copy(update=more)
    return replace(reading, at=start, spec=spec)


def template_of_yaml(path: Path, text: str, environment: Mapping[str, str]) -> Document:
    """Read YAML with Jinja in it.

    Args:
        path: Where it stands.
        text: What it says.
        environment: Variables that it may use.

    Raises:
        ModelError: It is no template, or no YAML.
    """
    known = dict(environment)
    for name, (variable, default) in _FOLDERS.items():
        known[name] = known.get(variable, default)
    plain = rendered(text, str(path), known, lambda name: _unset(name, known))
    return parse_yaml(plain, Location(str(path)), None)


def _unset(name: str, known: Mapping[str, str]) -> ModelError:
    close = get_close_matches(name, known, n=1, cutoff=0.75)
    if close:
        return ModelError(f"the variable '{name}' is not set", None, f"did you mean '{close[0]}'?")
    default = f"or give a default: {{{{ {name}|default('…') }}}}"
    if re.match("SQLFLOW_|KAFLOW_", name):
        return ModelError(f"the variable '{name}' is not set", None, f"export {name}=…, {default}")
    hint = f"allow it by this line in kaflow.yaml: env: [SQLFLOW_*, {name}], {default}"
    return ModelError(f"the variable '{name}' is not one that files may use", None, hint)
