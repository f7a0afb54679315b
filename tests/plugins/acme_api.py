"""A source that polls an API for orders, as an example of Streamling names it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from threading import Event
from urllib.request import urlopen

from pydantic import BaseModel, Field

from kaflow_engine.api.sources import Given, Piece


class OrdersOptions(BaseModel):
    """How often it asks."""

    poll_interval_ms: int = Field(default=5000, gt=0)


class OrdersSource:
    """Orders, which are journalled: the API gives each of them once."""

    options = OrdersOptions
    replays = False

    def bounded(self, options: OrdersOptions) -> bool:
        return False

    def columns(self, options: OrdersOptions) -> Mapping[str, str]:
        return {"id": "BIGINT", "amount": "DOUBLE", "created_at": "TIMESTAMPTZ"}

    def open(self, given: Given) -> "Orders":
        options = given.options
        assert isinstance(options, OrdersOptions)
        url = given.settings.get("url", "http://localhost:8087/orders")
        return Orders(url, options.poll_interval_ms / 1000)


@dataclass(frozen=True)
class Orders:
    """Asks for the orders behind the last one."""

    url: str
    interval: float

    def read(self, after: object) -> Iterator[Piece]:
        last = int(str(after or 0))
        pauses = max(1, round(self.interval))
        while True:
            with urlopen(f"{self.url}?after={last}", timeout=10) as answer:
                orders = json.loads(answer.read())
            if orders:
                last = orders[-1]["id"]
                yield Piece(rows=orders, position=last)
            for _ in range(pauses):
                Event().wait(self.interval / pauses)
                yield Piece()
