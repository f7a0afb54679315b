"""A source that polls an API for orders, as an example of Streamling names it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.request import urlopen

from pydantic import BaseModel, Field

from kaflow_engine.api.hooks import SourceHooks


class OrdersOptions(BaseModel):
    """How often it asks."""

    poll_interval_ms: int = Field(default=5000, gt=0)


class OrdersSource(SourceHooks):
    """Orders behind the last one: the API hears which of them it may forget."""

    options = OrdersOptions

    def columns(self, options: OrdersOptions) -> Mapping[str, str]:
        return {"id": "BIGINT", "amount": "DOUBLE", "created_at": "TIMESTAMPTZ"}

    def initialize(self) -> None:
        said = self.given.options
        assert isinstance(said, OrdersOptions)
        self.pause = said.poll_interval_ms / 1000
        self.url = self.given.settings.get("url", "http://localhost:8087/orders")
        self.last = self.position or 0

    def generate_batch(self) -> Sequence[Mapping[str, Any]]:
        orders = self._ask(f"after={self.last}")
        self.last = orders[-1]["id"] if orders else self.last
        return orders

    def process_checkpoint_marker(self, epoch: int) -> int:
        return self.last

    def process_checkpoint_finalizer(self, epoch: int) -> None:
        self._ask(f"after={self.last}&done={epoch}")

    def _ask(self, what: str) -> list[dict[str, Any]]:
        with urlopen(f"{self.url}?{what}", timeout=10) as answer:
            return json.loads(answer.read())
