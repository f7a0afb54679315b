"""A transform that is given rows in tasks, and hears on the driver when they are committed."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from kaflow_engine.connectors.hooked.calls import CONTRACT, AnyOptions, Calls
from kaflow_engine.plugins.finalizing import Finalizing
from kaflow_engine.plugins.raised import OF_TRANSFORMS, plugin_errors
from kaflow_engine.plugins.transforms import GivenTransform, NewRows, TransformUnfit

if TYPE_CHECKING:
    import pyarrow as pa  # planning asks for columns only, and it takes long to load

PLACE = "$row"
"""The column of its rows that says of which row each is made."""


class TransformHooks:
    """A kind of transform and, for each hand-over of rows in a task, the object that takes them.

    Epochs are the numbers of batches. A batch runs in several tasks and perhaps more than once, so
    objects share nothing: the same rows must become the same. What hears of commits is one more
    object, on the driver.
    """

    contract = CONTRACT
    options: type[BaseModel] = AnyOptions
    given: GivenTransform

    # what an author writes, plain or async

    def initialize(self) -> Any:
        """Begin; `given` is there."""

    def process_batch(self, data: "pa.RecordBatch") -> "pa.RecordBatch | pa.Table | NewRows | Any":
        """Return what becomes of rows: as many, in their order, or some of them, or several of one,
        with the column `$row` of the rows that they are made of.

        Where it raises, it is given the rows again, fewer at a time, until the one is found on
        which it fails: its record is a dead letter.

        Raises:
            TransformAway: It may heal; so may connections that break and time-outs of Python.
            TransformUnfit: Someone must act.
        """
        raise NotImplementedError

    def process_checkpoint_marker(self, epoch: int) -> Any:
        """Let what these rows have left elsewhere be where it survives: their batch is committed
        only behind this. It comes after each call of `process_batch`, in each task and try."""

    def process_checkpoint_finalizer(self, epoch: int) -> Any:
        """Hear, on the driver, that an epoch is committed, and never comes again. At least once: a
        run that begins says it of the last one."""

    def terminate(self) -> Any:
        """End, on the driver."""

    # what the engine asks

    def columns(self, options: Any) -> Mapping[str, str | None]:
        """Return the columns that it adds or gives another DuckDB type; None: it takes the column
        away."""
        return {}

    def open(self, given: GivenTransform) -> "_Transforming":
        """Return what transforms rows."""
        return _Transforming(self._made(given))

    def finalizing(self, given: GivenTransform) -> Finalizing | None:
        """Return what hears of commits; None: it wants to hear of none."""
        if type(self).process_checkpoint_finalizer is TransformHooks.process_checkpoint_finalizer:
            return None
        return _Hearing(self._made(given))

    def _made(self, given: GivenTransform) -> "TransformHooks":
        made = type(self)()
        made.given = given
        return made


class _Transforming:
    """One hand-over of rows in a task."""

    def __init__(self, made: TransformHooks) -> None:
        self._object, self._calls, self._begun = made, Calls(), False

    def __call__(self, rows: "pa.Table") -> NewRows:
        import pyarrow as pa

        hooks, calls = self._object, self._calls
        if not self._begun:
            _call(hooks, calls, hooks.initialize)
            self._begun = True
        places = pa.array(range(rows.num_rows), pa.int64())
        (data,) = rows.append_column(PLACE, places).combine_chunks().to_batches()
        made = calls(hooks.process_batch, data)
        found = made if isinstance(made, NewRows) else _new_rows(made, hooks.given.name, data)
        if batch := hooks.given.batch:
            _call(hooks, calls, hooks.process_checkpoint_marker, batch)
        return found


def _new_rows(made: Any, name: str, data: "pa.RecordBatch") -> NewRows:
    import pyarrow as pa

    if not isinstance(made, pa.RecordBatch | pa.Table):
        raise TransformUnfit(
            f"transform '{name}' returns {type(made).__name__} from 'process_batch'",
            hint="correct the plugin: return a batch or a table of Arrow, or NewRows",
        )
    rows = pa.Table.from_batches([made]) if isinstance(made, pa.RecordBatch) else made
    if PLACE in rows.column_names:
        return NewRows(rows=rows.drop_columns([PLACE]), of=rows[PLACE].combine_chunks())
    if rows.num_rows != data.num_rows:
        raise TransformUnfit(
            f"transform '{name}' makes {rows.num_rows} rows of {data.num_rows}, and has no column "
            f"'{PLACE}' that says of which",
            hint=f"correct the plugin: keep '{PLACE}' of the rows that went in, as filter and take "
            "of Arrow do",
        )
    return NewRows(rows=rows)


class _Hearing:
    """What hears of commits, which begins with the first."""

    def __init__(self, made: TransformHooks) -> None:
        self._object, self._calls, self._begun = made, Calls(), False

    def finalized(self, batch: int) -> None:
        if not self._begun:
            _call(self._object, self._calls, self._object.initialize)
            self._begun = True
        _call(self._object, self._calls, self._object.process_checkpoint_finalizer, batch)

    def ended(self) -> None:
        if self._begun:
            _call(self._object, self._calls, self._object.terminate)
        self._calls.close()


def _call(hooks: TransformHooks, calls: Calls, hook: Any, *given: object) -> None:
    """Call a hook that no row makes fail."""
    called = f"transform '{hooks.given.name}'"
    with plugin_errors(OF_TRANSFORMS, called, f"fails at '{hook.__name__}'"):
        calls(hook, *given)
