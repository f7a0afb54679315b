"""How fast the product reads what waits for it."""

from typing import Any

from bench.measure.processes import watched
from bench.measure.product import Product, measured
from bench.measure.rates import steady_rate, warm_up

PATIENCE_S = 1_800.0
"""Seconds after which a run has failed."""

Numbers = dict[str, Any]


def read_through(product: Product, broker: int) -> tuple[Numbers, list[dict[str, Any]]]:
    """Run the product to the end of its topics; return what was measured, and its progress.

    Args:
        product: To be started; it ends when it has caught up.
        broker: Process of the broker.

    Raises:
        RunError: It failed, or takes too long.
        ValueError: Its batches were too few.
    """
    with product, watched(product.pid, broker) as seen:
        product.wait(PATIENCE_S)
    entries = product.progress()
    batches = measured(entries)
    rate = steady_rate(batches, warm_up(len(batches)))
    found: Numbers = {
        "records_per_s": rate.records_per_s,
        "batch_ms": rate.batch_ms,
        "between_ms": rate.between_ms,
        "rss_mb": seen.tree,
        "worker_mb": seen.worker,
        "cpu_s_per_million": seen.for_a_million(rate),
    }
    return found, entries
