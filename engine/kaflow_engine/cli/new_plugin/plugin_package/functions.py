"""Functions that SQL may call."""

from kaflow_engine.api.functions import function


@function
def rounded_to(amount: float, step: float) -> float:
    """Return an amount as the nearest multiple of a step."""
    return round(amount / step) * step
