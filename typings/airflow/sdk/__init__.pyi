from collections.abc import Mapping
from datetime import timedelta
from logging import Logger
from typing import Any, NoReturn

from airflow.triggers.base import BaseTrigger

Context = Mapping[str, Any]

class BaseOperator:
    log: Logger
    def __init__(self, **kwargs: Any) -> None: ...
    def execute(self, context: Context) -> Any: ...
    def on_kill(self) -> None: ...
    def defer(
        self, *, trigger: BaseTrigger, method_name: str, timeout: timedelta | None = None
    ) -> NoReturn: ...

class BaseSensorOperator(BaseOperator):
    poke_interval: float
    timeout: float
    def __init__(self, *, poke_interval: timedelta | float = 60, **kwargs: Any) -> None: ...
    def poke(self, context: Context) -> bool: ...
