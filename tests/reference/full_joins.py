"""A FULL JOIN of events as two chains."""

from tests.reference.pipeline import Chain, Join


def of_full_join(chain: Chain) -> tuple[Chain, Chain]:
    """Return the chain whose left rows drive, and that of the right rows that match nothing.

    Args:
        chain: Its first join is the FULL JOIN, written as a LEFT JOIN.
    """
    first, *rest = chain.joins
    turned = Join(
        alias=chain.driving,
        topic=chain.driving_topic,
        on=tuple((right, left) for left, right in first.on),
        anti=True,
    )
    right = Chain(
        driving=first.alias,
        driving_topic=first.topic,
        joins=(turned, *rest),
        turned=True,
    )
    return chain, right
