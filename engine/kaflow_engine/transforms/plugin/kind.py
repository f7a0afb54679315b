"""Plugins as a kind of transform."""

from collections.abc import Iterator

from kaflow_engine.flow.transforms import PluginTransformParams, Transform
from kaflow_engine.operators.transform.contract import Mistake, RowTransform


class PluginTransformKind:
    """Transforms of packages, as a `TransformKind`."""

    def mistakes(self, params: PluginTransformParams) -> Iterator[Mistake]:
        """Yield nothing: planning has asked the plugin for its columns, and looked at options."""
        yield from ()

    def open(self, transform: Transform) -> RowTransform:
        """Return what lets the plugin transform rows."""
        from kaflow_engine.transforms.plugin.rows import PluginRows

        assert isinstance(transform.params, PluginTransformParams)
        return PluginRows(transform, transform.params)
