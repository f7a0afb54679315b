"""Handlers as a kind of transform."""

from collections.abc import Iterator

from kaflow_engine.flow.transforms import HandlerParams, Transform
from kaflow_engine.operators.transform.contract import Mistake, RowTransform


class HandlerKind:
    """At least once towards the service, and exactly once towards what is behind it."""

    def mistakes(self, params: HandlerParams) -> Iterator[Mistake]:
        """Yield nothing: who is asked shows when it is asked."""
        yield from ()

    def open(self, transform: Transform) -> RowTransform:
        """Return what asks."""
        from kaflow_engine.transforms.handler.handler import Handler  # planning never asks

        assert isinstance(transform.params, HandlerParams)
        return Handler(transform, transform.params)
