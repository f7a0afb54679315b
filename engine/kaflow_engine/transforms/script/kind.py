"""Scripts as a kind of transform."""

from collections.abc import Iterator

from kaflow_engine.flow.transforms import ScriptParams, Transform
from kaflow_engine.operators.transform.contract import Mistake, RowTransform
from kaflow_engine.transforms.script.engine import ScriptEngine, ScriptMistake, limits_of


class ScriptKind:
    """Scripts, as a `TransformKind`."""

    def mistakes(self, params: ScriptParams) -> Iterator[Mistake]:
        """Yield why a script is none."""
        try:
            ScriptEngine(params.text, (), (), limits_of(params))
        except ScriptMistake as mistake:
            yield Mistake(key="script", message=str(mistake), line=mistake.line)

    def open(self, transform: Transform) -> RowTransform:
        """Return what runs the script in an engine of its own."""
        from kaflow_engine.transforms.script.run import Script  # planning runs no script

        return Script(transform)
