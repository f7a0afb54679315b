"""Sample records for the topics of the examples; the same seed gives the same bytes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import TypeVar

from kaflow_engine.errors import UnknownName

BASE = 1_767_225_600_000
"""2026-01-01T00:00:00Z, where time begins unless the caller says otherwise; ms."""

T = TypeVar("T")
Value = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Draw:
    """Chance and circumstances of one record."""

    chance: Random
    number: int
    """Counts the records of one topic, from 0."""
    ts: int
    entities: int
    """How many users, devices, products and merchants there are."""

    def one_of(self, options: Sequence[T]) -> T:
        """One of the options."""
        # only random() is promised to give the same numbers in every Python
        return options[int(self.chance.random() * len(options))]

    def whole(self, low: int, high: int) -> int:
        """A whole number, both ends included."""
        return low + int(self.chance.random() * (high - low + 1))

    def amount(self, low: float, high: float) -> float:
        """A number with two digits after the point."""
        return round(low + self.chance.random() * (high - low), 2)

    def entity(self, letter: str) -> str:
        """One of the entities of a kind; the first ones come up most often."""
        return f"{letter}{1 + int(self.chance.random() ** 2 * self.entities)}"

    def name(self) -> str:
        """The name of a person."""
        return f"{self.one_of(_FIRST)} {self.one_of(_LAST)}"


@dataclass(frozen=True, slots=True)
class FakeTopic:
    """What the records of one topic look like."""

    key: str
    """The column that is the Kafka key."""
    make: Callable[[Draw], Value]
    """Everything but the key of a dimension."""
    dimension: str = ""
    """The letter that the names of its entities begin with; empty for events."""


_FIRST = ("Ada", "Alan", "Barbara", "Donald", "Edsger", "Frances", "Grace", "Ken", "Niklaus")
_LAST = ("Allen", "Dijkstra", "Hopper", "Knuth", "Liskov", "Lovelace", "Thompson", "Turing")
_COUNTRIES = ("BR", "DE", "FR", "GB", "IN", "JP", "PT", "US")
_TIERS = ("free", "free", "basic", "premium", "gold")
_KINDS = ("login", "logout", "page_view", "add_to_cart", "purchase")
_CATEGORIES = ("books", "electronics", "garden", "groceries", "toys")
_PLACES = ("berlin/hall-1", "berlin/hall-2", "lisbon/roof", "porto/line-3")


def _user_event(draw: Draw) -> Value:
    return {"user_id": draw.entity("u"), "event_type": draw.one_of(_KINDS), "timestamp": draw.ts}


def _user_profile(draw: Draw) -> Value:
    return {
        "subscription_tier": draw.one_of(_TIERS),
        "country": draw.one_of(_COUNTRIES),
        "full_name": draw.name(),
    }


def _transaction(draw: Draw) -> Value:
    amount = draw.amount(1, 1500)
    return {
        "transaction_id": f"t{draw.number + 1}",
        "user_id": draw.entity("u"),
        "merchant_id": draw.entity("m"),
        "amount": amount,
        "currency": draw.one_of(("EUR", "USD")),
        "last_purchase_amount": amount,
        "timestamp": draw.ts,
    }


def _user(draw: Draw) -> Value:
    return {"risk_score": draw.amount(0, 1), "account_age_days": draw.whole(0, 4000)}


def _merchant(draw: Draw) -> Value:
    return {"merchant_category": draw.one_of(_CATEGORIES), "country": draw.one_of(_COUNTRIES)}


def _click(draw: Draw) -> Value:
    product = draw.entity("p")
    return {
        "user_id": draw.entity("u"),
        "page_view": f"/products/{product}",
        "product_id": product,
        "timestamp": draw.ts,
    }


def _product(draw: Draw) -> Value:
    return {"category": draw.one_of(_CATEGORIES), "price": draw.amount(1, 500)}


def _purchase(draw: Draw) -> Value:
    day = datetime.fromtimestamp(draw.ts / 1000, UTC).date().isoformat()
    return {
        "user_id": draw.entity("u"),
        "product_id": draw.entity("p"),
        "last_purchase_date": day,
        "timestamp": draw.ts,
    }


def _reading(draw: Draw) -> Value:
    return {
        "device_id": draw.entity("d"),
        "sensor_value": draw.amount(-20, 120),
        "timestamp": draw.ts,
    }


def _device(draw: Draw) -> Value:
    return {"location": draw.one_of(_PLACES), "device_type": draw.one_of(("thermo", "baro"))}


def _device_config(draw: Draw) -> Value:
    low = draw.whole(-10, 20)
    return {"threshold_config": {"min": low, "max": low + draw.whole(10, 80)}}


def _user_action(draw: Draw) -> Value:
    return {"user_id": draw.entity("u"), "action": draw.one_of(_KINDS), "timestamp": draw.ts}


def _customer_profile(draw: Draw) -> Value:
    return {"subscription_tier": draw.one_of(_TIERS), "full_name": draw.name()}


def _profile(draw: Draw) -> Value:
    first, last = draw.name().lower().split()
    return {"email": f"{first}.{last}@example.com", "tier": draw.one_of(_TIERS)}


def _support(draw: Draw) -> Value:
    return {
        "user_id": draw.entity("u"),
        "support_tickets": draw.whole(1, 9),
        "timestamp": draw.ts,
    }


def _order(draw: Draw) -> Value:
    placed = datetime.fromtimestamp(draw.ts / 1000, UTC)
    return {
        "order_id": f"o{draw.ts}-{draw.number + 1}",
        "customer_id": draw.entity("c"),
        "amount": draw.amount(1, 1500),
        "status": draw.one_of(("placed", "placed", "paid", "cancelled")),
        "placed_at": placed.isoformat().replace("+00:00", "Z"),
    }


def _customer(draw: Draw) -> Value:
    return {"name": draw.name(), "country": draw.one_of(_COUNTRIES)}


TOPICS: dict[str, FakeTopic] = {
    "clickstreams": FakeTopic("user_id", _click),
    "customer_profiles": FakeTopic("user_id", _customer_profile, dimension="u"),
    "device_config": FakeTopic("device_id", _device_config, dimension="d"),
    "devices": FakeTopic("device_id", _device, dimension="d"),
    "events": FakeTopic("user_id", _user_event),
    "merchants": FakeTopic("merchant_id", _merchant, dimension="m"),
    "products": FakeTopic("product_id", _product, dimension="p"),
    "profiles": FakeTopic("user_id", _profile, dimension="u"),
    "purchase_history": FakeTopic("user_id", _purchase),
    "sensor_readings": FakeTopic("device_id", _reading),
    "shop.customers": FakeTopic("customer_id", _customer, dimension="c"),
    "shop.orders": FakeTopic("order_id", _order),
    "support": FakeTopic("user_id", _support),
    "transactions": FakeTopic("user_id", _transaction),
    "user_actions": FakeTopic("user_id", _user_action),
    "user_events": FakeTopic("user_id", _user_event),
    "user_profiles": FakeTopic("user_id", _user_profile, dimension="u"),
    "users": FakeTopic("user_id", _user, dimension="u"),
}
"""Every topic that records can be made for."""


def fake_topic(name: str) -> FakeTopic:
    """Return the generator of a topic.

    Raises:
        UnknownName: there is none.
    """
    if name not in TOPICS:
        raise UnknownName("sample topic", name, TOPICS)
    return TOPICS[name]
