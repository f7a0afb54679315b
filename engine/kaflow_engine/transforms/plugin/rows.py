"""Rows that go through the transform of a plugin."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from kaflow_engine.errors import KaflowError
from kaflow_engine.flow.transforms import PluginTransformParams, Transform
from kaflow_engine.operators.transform.contract import Failure, TransformBatch, Transformed
from kaflow_engine.plugins.halves import in_halves
from kaflow_engine.plugins.installed import TRANSFORMS
from kaflow_engine.plugins.metrics import PluginMetrics
from kaflow_engine.plugins.raised import OF_TRANSFORMS, plugin_errors
from kaflow_engine.plugins.state import Added, Owner
from kaflow_engine.plugins.transforms import (
    GivenTransform,
    NewRows,
    TransformPlugin,
    TransformUnfit,
    transform_plugin,
)
from kaflow_engine.transforms.row_answers import row_keys

_ERROR = "PluginError"
_OUTAGES = (KaflowError, ConnectionError, TimeoutError)
"""What no row is the cause of."""


class BrokenContract(Exception):
    """What a plugin gives is not what its contract says."""


class PluginRows:
    """The transform of a plugin as one task uses it."""

    def __init__(self, transform: Transform, params: PluginTransformParams) -> None:
        self._transform, self._params = transform, params
        self._names = [column.name for column in transform.results]
        self._called = f"plugin '{params.plugin}' of '{transform.name}'"
        self._owner = Owner(TRANSFORMS, params.plugin, transform.name)

    def __call__(self, rows: pa.Table, batch: TransformBatch) -> Transformed:
        """Let the plugin transform rows; where it fails on some, it is given these by themselves.

        Raises:
            TransformAway: A connection broke, or it took too long: it may heal.
            TransformUnfit: The plugin cannot be opened, or does not keep its contract.
            KaflowError: The plugin has raised it.
        """
        if not rows.num_rows:
            return Transformed(rows=self._none(), origin=pa.array([], pa.int64()))
        found, added = self._some(self._opened(batch), rows)
        if added:
            self._learn(added, batch)
        return found

    def _opened(self, batch: TransformBatch) -> TransformPlugin:
        plugin = self._params.plugin
        kind = transform_plugin(plugin)
        with plugin_errors(OF_TRANSFORMS, self._called, "cannot be opened"):
            given = given_transform(self._transform, self._params, batch.connection(plugin, ""))
            return kind.open(
                replace(
                    given,
                    state=batch.states.get(self._owner.text, {}),
                    metrics=PluginMetrics(plugin, batch.measures),
                    batch=batch.batch if batch.mark else 0,
                )
            )

    def _some(
        self, plugin: TransformPlugin, rows: pa.Table
    ) -> tuple[Transformed, Mapping[int, Sequence[Added]]]:
        """Transform rows; those on which it raises, it is given by themselves.

        Returns:
            What became of them, and what they add to the state, by their places.
        """
        parts: list[Transformed] = []
        added: dict[int, list[Added]] = {}
        with plugin_errors(OF_TRANSFORMS, self._called):
            for start, count, made in in_halves(
                lambda start, count: plugin(rows.slice(start, count)), rows.num_rows, _OUTAGES
            ):
                parts.append(self._part(made, start, count))
                for row, key, value in getattr(made, "learned", ()):
                    added.setdefault(start + row, []).append((key, value))
        found = Transformed(
            rows=pa.concat_tables([part.rows for part in parts], promote_options="permissive"),
            origin=pa.concat_arrays([part.origin for part in parts]),
            failures=tuple(failure for part in parts for failure in part.failures),
        )
        return found, added

    def _learn(self, added: Mapping[int, Sequence[Added]], batch: TransformBatch) -> None:
        """Take what rows add to the state, once for each row."""
        identities = batch.identities().take(pa.array([*added], pa.int64()))
        keys = row_keys(identities, pa.array([self._transform.name] * len(added)))
        by_row = dict(zip(keys.to_pylist(), added.values(), strict=True))
        batch.learned.take(self._owner, by_row)

    def _part(self, made: NewRows | Exception, start: int, count: int) -> Transformed:
        if isinstance(made, Exception):
            failure = Failure(row=start, error=_ERROR, message=_text(made))
            none = pa.array([], pa.int64())
            return Transformed(rows=self._none(), origin=none, failures=(failure,))
        try:
            return outcome(made, count, self._names, start)
        except BrokenContract as broken:
            raise TransformUnfit(
                f"{self._called} {broken}",
                hint="correct the plugin: see NewRows of kaflow_engine.api.transforms",
            ) from broken

    def _none(self) -> pa.Table:
        return pa.table({name: pa.nulls(0) for name in self._names})


def given_transform(
    transform: Transform, params: PluginTransformParams, settings: Mapping[str, str]
) -> GivenTransform:
    """Return what a plugin gets to know of its transform, wherever that is."""
    kind = transform_plugin(params.plugin)
    return GivenTransform(
        name=transform.name,
        options=kind.options.model_validate(dict(params.options)),
        settings=settings,
        columns={column.name: column.type for column in transform.columns},
        results={column.name: column.type for column in transform.results},
    )


def outcome(made: NewRows, count: int, names: Sequence[str], start: int = 0) -> Transformed:
    """Return what a plugin made of rows.

    Args:
        made: What it gives.
        count: How many rows it was given.
        names: The columns that it has to give.
        start: The place of the first of these rows among all of the task.

    Raises:
        BrokenContract: It does not give what `NewRows` says.
    """
    missing = [name for name in names if name not in made.rows.column_names]
    if missing:
        raise BrokenContract(f"gives no column '{missing[0]}'")
    of = np.arange(made.rows.num_rows) if made.of is None else np.asarray(made.of, dtype=np.int64)
    if len(of) != made.rows.num_rows:
        raise BrokenContract(f"gives {made.rows.num_rows} rows, and says of {len(of)} what of")
    if made.of is None and len(of) != count:
        raise BrokenContract(f"makes {len(of)} rows of {count}, and does not say of which")
    if len(of) and (of.min() < 0 or of.max() >= count or (np.diff(of) < 0).any()):
        raise BrokenContract(f"names places that do not ascend from 0 to {count - 1}")
    if any(not 0 <= row < count or row in of for row in made.failures):
        raise BrokenContract("fails on a row that it was not given, or of which it makes one")
    if any(not 0 <= row < count for row, _, _ in made.learned):
        raise BrokenContract("learns from a row that it was not given")
    failures = (
        Failure(row=start + row, error=_ERROR, message=why)
        for row, why in sorted(made.failures.items())
    )
    return Transformed(
        rows=made.rows.select([*names]),
        origin=pa.array(of + start, pa.int64()),
        failures=tuple(failures),
    )


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
