"""The sensor that waits until a stream is ready."""

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, cast

import httpx
from airflow.sdk import BaseSensorOperator, Context
from airflow.sdk.exceptions import AirflowFailException, AirflowSensorTimeout

from kaflow_engine.airflow.arguments import checked_url
from kaflow_engine.airflow.ready_trigger import (
    PATH,
    PATIENCE_S,
    KaflowReadyTrigger,
    answer_of,
    no_answer,
)
from kaflow_engine.errors import ModelError


class KaflowReadySensor(BaseSensorOperator):
    """Waits until every pipeline of a `kaflow run` follows its topics.

    It waits in Airflow's triggerer, and takes no place of a worker meanwhile.
    """

    template_fields: Sequence[str] = ("url",)
    ui_color = "#e3f1e9"

    def __init__(
        self,
        *,
        url: str,
        poke_interval: timedelta | float = 10,
        deferrable: bool = True,
        **kwargs: Any,
    ) -> None:
        """Take what to wait for.

        Args:
            url: The address of the port of the stream, which `kaflow run` says at its start.
            poke_interval: The time between two questions.
            deferrable: Whether to wait in the triggerer rather than in a worker.
            kwargs: Whatever all sensors take: `timeout`, `soft_fail` and so on.

        Raises:
            ModelError: The address is none.
        """
        super().__init__(poke_interval=poke_interval, **kwargs)
        self.url = checked_url(url)
        self.deferrable = deferrable

    def execute(self, context: Context) -> None:
        """Ask once, and wait where the stream is not ready.

        Raises:
            AirflowFailException: The address is none.
            AirflowSensorTimeout: The time is up.
        """
        if not self.deferrable:
            super().execute(context)
        elif not self.poke(context):
            self.defer(
                trigger=KaflowReadyTrigger(
                    url=self._address(),
                    poke_interval=self.poke_interval,
                    until=time.time() + self.timeout,
                ),
                method_name="execute_complete",
            )

    def poke(self, context: Context) -> bool:
        """Ask the port once."""
        try:
            status = httpx.get(f"{self._address()}{PATH}", timeout=PATIENCE_S).status_code
            ready, answer = answer_of(status)
        except httpx.HTTPError as error:
            ready, answer = False, no_answer(error)
        self.log.info("%s: %s", self.url, answer)
        return ready

    def execute_complete(self, context: Context, event: dict[str, Any]) -> None:
        """End as the trigger says.

        Raises:
            AirflowSensorTimeout: The time is up.
        """
        self.log.info("%s: %s", self.url, event["answer"])
        if not event["ready"]:
            raise AirflowSensorTimeout(
                f"no stream is ready at {self.url} after {self.timeout:g} s: {event['answer']}"
            )

    def _address(self) -> str:
        try:
            return cast(str, checked_url(self.url, rendered=True))
        except ModelError as error:
            raise AirflowFailException(str(error)) from error
