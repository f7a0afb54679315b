"""Plans as text, so that an open batch can be run again with the plan it was begun with."""

from functools import cache
from hashlib import sha256
from typing import Any

from pydantic import TypeAdapter

from kaflow_engine.operators.params import Plan


def plan_text(plan: Plan) -> str:
    """Return a plan as JSON."""
    return _adapter().dump_json(plan).decode()


def plan_of(text: str) -> Plan:
    """Return the plan of what `plan_text` gave."""
    return _adapter().validate_json(text)


def fingerprint(plan: Plan) -> str:
    """Return what two plans share only if they are equal."""
    return sha256(plan_text(plan).encode()).hexdigest()[:16]


@cache
def _adapter() -> TypeAdapter[Any]:
    return TypeAdapter(Plan)
