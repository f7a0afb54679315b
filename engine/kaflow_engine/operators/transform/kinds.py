"""The kinds of transforms there are: a table of names, loaded when they are used."""

from functools import lru_cache
from importlib import import_module

from kaflow_engine.operators.transform.contract import TransformKind

TRANSFORMS: dict[str, str] = {
    "plugin": "kaflow_engine.transforms.plugin.kind:PluginTransformKind",
    "lookup": "kaflow_engine.transforms.lookup.kind:LookupKind",
    "handler": "kaflow_engine.transforms.handler.kind:HandlerKind",
    "script": "kaflow_engine.transforms.script.kind:ScriptKind",
}
"""Type → module and class of a `TransformKind`."""


@lru_cache(maxsize=64)
def transform_kind(name: str) -> TransformKind:
    """Return the kind of transform of a type, imported on first use."""
    module, _, attribute = TRANSFORMS[name].partition(":")
    found: TransformKind = getattr(import_module(module), attribute)()
    return found
