"""Look-ups as a kind of transform."""

from collections.abc import Iterator

from kaflow_engine.flow.transforms import LookupParams, Transform
from kaflow_engine.operators.transform.contract import Mistake, RowTransform


class LookupKind:
    """The database is asked for the rows with the values of a batch, once for each task."""

    def mistakes(self, params: LookupParams) -> Iterator[Mistake]:
        """Yield nothing: what a table has shows when it is planned with its columns."""
        yield from ()

    def open(self, transform: Transform) -> RowTransform:
        """Return what looks up."""
        from kaflow_engine.transforms.lookup.lookup import LookUp

        assert isinstance(transform.params, LookupParams)
        return LookUp(transform, transform.params)
