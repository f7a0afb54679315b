"""The events of Nexmark: of 50 one registers a person, three open auctions, and 46 are bids.

Numbers follow the generator of Apache Beam: who sells and bids on what is skewed as there, ids that
are named may belong to somebody who registers, or to an auction that opens, a little later, and
records have its average sizes (200, 500 and 100 bytes as Beam counts them). There is one event in
a millisecond, and the same seed gives the same events, in whatever pieces they are made.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

START = 1_767_225_600_000
"""Event time of the first event, epoch milliseconds."""

EPOCH = 50
"""Events of which one is a person and three are auctions."""
AUCTIONS = 3
FIRST_ID = 1_000
CATEGORIES = 5
FIRST_CATEGORY = 10
SIDE_ROWS = 10_000
"""Rows of the table that q13 looks up."""

_ACTIVE_PERSONS = 1_000
_OPEN_AUCTIONS = 100
_LEAD = 10
"""Persons and auctions that may be named before they are there."""
_HOT = 100
"""One of so many persons, and of auctions, is hot."""
_PIECE = 10_000
"""Events whose random numbers have one seed; whole epochs."""

_STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
_CITIES = (
    *("Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland"),
    *("Bend", "Redmond", "Seattle", "Kent", "Cheyenne"),
)
_FIRST_NAMES = (
    *("Peter", "Paul", "Luke", "John", "Saul", "Vicky"),
    *("Kate", "Julie", "Sarah", "Deiter", "Walter"),
)
_LAST_NAMES = (
    *("Shultz", "Abrams", "Spencer", "White", "Bartels"),
    *("Walton", "Smith", "Jones", "Noris"),
)
_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
_LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", np.uint8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """Some events, by their kind; each in order of time."""

    person: pa.Table
    auction: pa.Table
    bid: pa.Table


def side_table() -> pa.Table:
    """Return the table that q13 looks up."""
    keys = np.arange(SIDE_ROWS)
    return pa.table({"key": keys, "value": _text("value-", keys)})


def events(first: int, stop: int, seed: int, start: int = START) -> Events:
    """Return the events with these numbers.

    Args:
        first: Number of the first one.
        stop: Number behind the last one.
        seed: Of all of them.
        start: Event time of number 0, epoch milliseconds.
    """
    pieces = range(first // _PIECE, -(-stop // _PIECE))
    made = [_Piece(number=number, seed=seed, start=start) for number in pieces]

    def whole(tables: list[pa.Table]) -> pa.Table:
        table = pa.concat_tables(tables)
        at = table["dateTime"]
        return table.filter(pc.and_(pc.greater_equal(at, start + first), pc.less(at, start + stop)))

    return Events(
        person=whole([piece.persons for piece in made]),
        auction=whole([piece.auctions for piece in made]),
        bid=whole([piece.bids for piece in made]),
    )


class _Piece:
    """Events with consecutive numbers."""

    def __init__(self, *, number: int, seed: int, start: int) -> None:
        self._numbers = np.arange(number * _PIECE, (number + 1) * _PIECE)
        self._random = [np.random.default_rng([seed, number, kind]) for kind in range(3)]
        self._start = start

    @cached_property
    def persons(self) -> pa.Table:
        """Those who register."""
        rng = self._random[0]
        numbers = self._numbers[self._numbers % EPOCH == 0]
        first = rng.integers(0, len(_FIRST_NAMES), len(numbers))
        last = rng.integers(0, len(_LAST_NAMES), len(numbers))
        name = pc.binary_join_element_wise(
            _one_of(_FIRST_NAMES, first), _one_of(_LAST_NAMES, last), " "
        )
        mail = pc.binary_join_element_wise(
            _letters(rng, len(numbers), 7), _letters(rng, len(numbers), 5), "@"
        )
        cards = rng.integers(0, 10_000, (4, len(numbers)))
        return pa.table(
            {
                "id": FIRST_ID + _person_before(numbers),
                "name": name,
                "emailAddress": pc.binary_join_element_wise(mail, "com", "."),
                "creditCard": pc.binary_join_element_wise(*(_digits(card) for card in cards), " "),
                "city": _one_of(_CITIES, rng.integers(0, len(_CITIES), len(numbers))),
                "state": _one_of(_STATES, rng.integers(0, len(_STATES), len(numbers))),
                "dateTime": self._start + numbers,
                "extra": _letters(rng, len(numbers), 124),
            }
        )

    @cached_property
    def auctions(self) -> pa.Table:
        """Those that open."""
        rng = self._random[1]
        place = self._numbers % EPOCH
        numbers = self._numbers[(place >= 1) & (place <= AUCTIONS)]
        count = len(numbers)
        opened, longest = self._start + numbers, 2 * _OPEN_AUCTIONS * EPOCH // AUCTIONS
        price = _prices(rng, count)
        hot = rng.integers(0, 4, count) > 0
        return pa.table(
            {
                "id": FIRST_ID + _auction_before(numbers),
                "itemName": _letters(rng, count, 20),
                "description": _letters(rng, count, 100),
                "initialBid": price,
                "reserve": price + _prices(rng, count),
                "dateTime": opened,
                "expires": opened + 1 + rng.integers(0, longest, count),
                "seller": FIRST_ID
                + np.where(hot, _hot(_person_before(numbers)), _persons(rng, numbers)),
                "category": FIRST_CATEGORY + rng.integers(0, CATEGORIES, count),
                "extra": _letters(rng, count, 296),
            }
        )

    @cached_property
    def bids(self) -> pa.Table:
        """What is offered."""
        rng = self._random[2]
        numbers = self._numbers[self._numbers % EPOCH > AUCTIONS]
        count = len(numbers)
        hot_auction, hot_bidder = rng.integers(0, 2, count) > 0, rng.integers(0, 4, count) > 0
        latest, person = _auction_before(numbers), _person_before(numbers)
        least = np.maximum(latest - _OPEN_AUCTIONS, 0)
        auction = least + rng.integers(0, latest - least + 1 + _LEAD)
        known = rng.integers(0, 2, count) > 0
        channel = _text("channel-", rng.integers(0, 10_000, count))
        channel = pc.if_else(
            known, _one_of(_CHANNELS, rng.integers(0, len(_CHANNELS), count)), channel
        )
        path = _letters(rng, count, 14)
        return pa.table(
            {
                "auction": FIRST_ID + np.where(hot_auction, _hot(latest), auction),
                "bidder": FIRST_ID + np.where(hot_bidder, _hot(person) + 1, _persons(rng, numbers)),
                "price": _prices(rng, count),
                "channel": channel,
                "url": pc.binary_join_element_wise(
                    pa.scalar("https://www.nexmark.com"), path, "item.htm?query=1", "/"
                ),
                "dateTime": self._start + numbers,
                "extra": _letters(rng, count, 20),
            }
        )


def _person_before(numbers: np.ndarray) -> np.ndarray:
    """Return the last person who registered before each event, or with it, counted from 0."""
    return numbers // EPOCH


def _auction_before(numbers: np.ndarray) -> np.ndarray:
    """Return the last auction that opened before each event, or with it, counted from 0."""
    return np.maximum(numbers // EPOCH * AUCTIONS + np.minimum(numbers % EPOCH, AUCTIONS) - 1, 0)


def _persons(rng: np.random.Generator, numbers: np.ndarray) -> np.ndarray:
    there = _person_before(numbers) + 1
    active = np.minimum(there, _ACTIVE_PERSONS)
    return there - active + rng.integers(0, active + _LEAD)


def _hot(latest: np.ndarray) -> np.ndarray:
    return latest // _HOT * _HOT


def _prices(rng: np.random.Generator, count: int) -> np.ndarray:
    return np.round(10 ** (rng.random(count) * 6) * 100).astype(np.int64)


def _one_of(words: tuple[str, ...], places: np.ndarray) -> pa.Array:
    return pa.array(words).take(pa.array(places))


def _text(head: str, numbers: np.ndarray) -> pa.Array:
    return pc.binary_join_element_wise(pa.scalar(head), pa.array(numbers).cast(pa.string()), "")


def _digits(numbers: np.ndarray) -> pa.Array:
    return pa.array(np.char.zfill(numbers.astype(str), 4))


def _letters(rng: np.random.Generator, count: int, mean: int) -> pa.Array:
    """Return random words, whose lengths differ by a fifth from a mean."""
    least, most = round(mean * 0.8), round(mean * 1.2)
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(rng.integers(least, most + 1, count), out=offsets[1:])
    text = _LETTERS[rng.integers(0, len(_LETTERS), int(offsets[-1]), dtype=np.uint8)]
    return pa.Array.from_buffers(
        pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(text)]
    )
