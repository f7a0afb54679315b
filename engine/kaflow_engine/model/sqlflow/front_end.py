"""The front end of SQLFlow: `.yml` files whose `pipeline` has a source, a handler and a sink."""

import re
from collections.abc import Sequence

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.model.files.yaml_file import read_text
from kaflow_engine.model.pipelines.contract import Lowered, Role, SourceFile, Surroundings
from kaflow_engine.model.pipelines.front_end import SUFFIXES
from kaflow_engine.model.pipelines.loader import Reading, unreadable
from kaflow_engine.model.sqlflow.serving.files import is_serve_file, serves

_PIPELINE = re.compile(r"^pipeline:[ \t]*(?:#.*)?\r?\n(?P<below>(?:[ \t#{].*\n?|\r?\n)*)", re.M)
_PART = re.compile(r"^[ \t]+(source|handler|sink):", re.M)
_LEAST = 2
"""Parts that make a pipeline SQLFlow's; one that lacks the third gets an error that says so."""


class SqlflowFiles:
    """YAML with Jinja in it, and a `pipeline` of source, handler and sink."""

    name = "SQLFlow file"
    endings = SUFFIXES
    example = "clicks.yml"
    variables = ("SQLFLOW_*",)

    def claims(self, text: str) -> bool:
        """Look for a `pipeline` with the parts that SQLFlow's have, or for `serve`."""
        if is_serve_file(text):
            return True
        found = _PIPELINE.search(text)
        return found is not None and len(set(_PART.findall(found["below"]))) >= _LEAST

    def role(self, file: SourceFile) -> Role | None:
        """Take nothing but what was claimed."""
        return None

    def lower(self, files: Sequence[SourceFile], around: Surroundings) -> Lowered:
        """Lower each file by itself."""
        served = [file for file in files if serves(file.path)]
        read = [(file, _reading(file, around)) for file in files if file not in served]
        return Lowered(
            readings=tuple(reading for file, reading in read if file.wanted),
            around=tuple(reading for file, reading in read if not file.wanted),
            mistakes=tuple(_no_pipeline(file) for file in served if file.standing == "named"),
        )


def _no_pipeline(file: SourceFile) -> ModelError:
    return ModelError(
        "this file says what is served, and is no pipeline",
        Location(str(file.path)),
        f"run kaflow serve {file.path}",
    )


def _reading(file: SourceFile, around: Surroundings) -> Reading:
    # Projects without such files load without sqlglot.
    from kaflow_engine.model.sqlflow.reading import read_sqlflow

    try:
        return read_sqlflow(file.path, read_text(file.path), around)
    except ModelError as mistake:
        return unreadable(file.path, mistake)
