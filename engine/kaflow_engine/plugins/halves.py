"""Find the rows on which a plugin raises: it is given the halves of those that it fails on."""

from collections.abc import Callable, Iterator
from typing import TypeVar

T = TypeVar("T")


def in_halves(
    call: Callable[[int, int], T],
    count: int,
    passing: tuple[type[Exception], ...],
    start: int = 0,
) -> Iterator[tuple[int, int, T | Exception]]:
    """Yield what becomes of parts of rows: where each begins, how many rows it has, and what is
    made of it, or the exception that its one row is the cause of.

    Args:
        call: Takes where a part begins and how many rows it has.
        count: How many rows there are.
        passing: What is raised as it is: no row is the cause of it.
        start: The place of the first row.
    """
    try:
        yield start, count, call(start, count)
    except passing:
        raise
    except Exception as error:
        if count == 1:
            yield start, count, error
            return
        half = count // 2
        yield from in_halves(call, half, passing, start)
        yield from in_halves(call, count - half, passing, start + half)
