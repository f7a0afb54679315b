"""What a plugin needs that offers a kind of sink, and the laws that it can test itself by."""

from typing import TYPE_CHECKING

from kaflow_engine.api.lazy import lazily

if TYPE_CHECKING:
    from kaflow_engine.connectors.contract import (
        Bounded,
        Capabilities,
        FinishedBatch,
        Outlet,
        Output,
        Owner,
        Refused,
        Sink,
        SinkKind,
        TaskPart,
        TaskSink,
        Unfit,
        Written,
    )
    from kaflow_engine.connectors.holding import Holding
    from kaflow_engine.connectors.json_rows import JsonRow, json_rows
    from kaflow_engine.connectors.plugins import PluginKind
    from kaflow_engine.connectors.slots import slots_of
    from kaflow_engine.connectors.unheld import UnheldOutlet, UnheldRows
    from kaflow_engine.errors import SinkAway, SinkError, SinkUnfit, StateError, TakenOver
    from kaflow_engine.model.columns import Column
    from kaflow_engine.plugins.metrics import PluginMetrics
    from kaflow_engine.state.answers import Answers
else:
    __getattr__ = lazily(__name__)

__all__ = [
    "Answers",
    "Bounded",
    "Capabilities",
    "Column",
    "FinishedBatch",
    "Holding",
    "JsonRow",
    "Outlet",
    "Output",
    "Owner",
    "PluginKind",
    "PluginMetrics",
    "Refused",
    "Sink",
    "SinkAway",
    "SinkError",
    "SinkKind",
    "SinkUnfit",
    "StateError",
    "TakenOver",
    "TaskPart",
    "TaskSink",
    "Unfit",
    "UnheldOutlet",
    "UnheldRows",
    "Written",
    "json_rows",
    "slots_of",
]
