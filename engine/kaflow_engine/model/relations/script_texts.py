"""The texts of scripts: in a pipeline file or beside it, with or without types."""

from dataclasses import dataclass, replace
from pathlib import Path

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.model.relations.transform_specs import ScriptSpec
from kaflow_engine.model.relations.typescript import TypeScriptMistake, without_types
from kaflow_engine.model.specs import PipelineSpec


@dataclass(frozen=True, slots=True)
class ScriptText:
    """A script as JavaScript, in the lines of its author."""

    text: str
    start: Location
    """Where it begins."""


def script_text(spec: PipelineSpec, name: str, said: ScriptSpec) -> ScriptText:
    """Return the text of a script.

    Args:
        spec: What the author wrote.
        name: Of the relation.
        said: What is said of it.

    Raises:
        ModelError: Its file cannot be read, or it is no TypeScript.
    """
    start = spec.place("relations", name, "script")
    text = said.script or ""
    if said.file is not None:
        at = spec.place("relations", name, "file")
        path = Path(spec.at.file).parent / said.file
        start = Location(str(path), 1)
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
            raise ModelError(
                f"the script '{said.file}' cannot be read: {why}",
                at,
                "file: is looked for from the folder of the pipeline file",
            ) from error
    if said.language == "typescript":
        try:
            text = without_types(text)
        except TypeScriptMistake as mistake:
            place = replace(start, line=(start.line or 1) + mistake.line - 1, column=0)
            raise ModelError(f"script of '{name}': {mistake}", place, mistake.hint) from mistake
        except ModelError as error:
            at = spec.place("relations", name, "language")
            raise ModelError(error.message, at, error.hint) from error
    return ScriptText(text, start)
