"""Kept answers: made once, for a while, within so many bytes."""
# pyright: basic

import asyncio

import pytest

from kaflow_engine.serving.kept import Keeper
from kaflow_engine.serving.sessions import Result


def result(size=10):
    return Result(columns=(), rows=b"x" * size, count=1, truncated=False)


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


class Made:
    """Makes an answer when it may."""

    def __init__(self, answer=None, error=None):
        self.answer, self.error = answer or result(), error
        self.may = asyncio.Event()
        self.times = 0

    async def __call__(self):
        self.times += 1
        await self.may.wait()
        if self.error is not None:
            raise self.error
        return self.answer


def test_an_answer_is_made_once_for_all_who_ask_and_kept_for_its_time():
    async def story():
        clock, made = Clock(), Made()
        keeper = Keeper(100, clock)
        first = asyncio.create_task(keeper.answer(("a",), 30, made))
        others = [asyncio.create_task(keeper.answer(("a",), 30, made)) for _ in range(3)]
        await asyncio.sleep(0)
        first.cancel()  # who asked first leaves
        made.may.set()
        assert [(await each).outcome for each in others] == ["shared"] * 3
        clock.now = 29
        found = await keeper.answer(("a",), 30, made)
        assert (found.outcome, found.age_s, made.times) == ("hit", 29, 1)
        clock.now = 30
        assert (await keeper.answer(("a",), 30, made)).outcome == "miss"
        assert (made.times, len(keeper), keeper.size) == (2, 1, 10)

    asyncio.run(story())


def test_an_error_reaches_all_and_is_not_kept():
    async def story():
        keeper, made = Keeper(100, Clock()), Made(error=ValueError("away"))
        made.may.set()
        found = await asyncio.gather(
            *(keeper.answer(("a",), 30, made) for _ in range(2)), return_exceptions=True
        )
        assert [str(each) for each in found] == ["away", "away"]
        made.error = None
        assert (await keeper.answer(("a",), 30, made)).outcome == "miss"
        assert made.times == 2

    asyncio.run(story())


@pytest.mark.parametrize(
    ("sizes", "kept"),
    [
        ([25, 25, 25, 25], [0, 1, 2, 3]),
        ([25, 25, 25, 25, 20], [1, 2, 3, 4]),  # the oldest leaves
        ([26], []),  # more than a quarter of all
    ],
)
def test_answers_leave_for_others(sizes, kept):
    async def story():
        keeper = Keeper(100, Clock())
        for number, size in enumerate(sizes):
            made = Made(result(size))
            made.may.set()
            await keeper.answer((number,), 30, made)
        again = Made()
        again.may.set()
        for number in kept:
            assert (await keeper.answer((number,), 30, again)).outcome == "hit"
        assert keeper.size == sum(sizes[number] for number in kept)

    asyncio.run(story())
