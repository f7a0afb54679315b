"""Tasks of Airflow that run the `kaflow` command, and a wait for a stream to be ready."""

from typing import TYPE_CHECKING

from kaflow_engine.api.lazy import lazily

if TYPE_CHECKING:
    from kaflow_engine.airflow.operator import KaflowOperator
    from kaflow_engine.airflow.ready_sensor import KaflowReadySensor
    from kaflow_engine.airflow.ready_trigger import KaflowReadyTrigger
else:
    __getattr__ = lazily(__name__)

__all__ = ["KaflowOperator", "KaflowReadySensor", "KaflowReadyTrigger"]
