"""Durations."""

import pytest

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.model.durations import LONGEST, format_duration, parse_duration

GOOD = {
    "500ms": 500,
    "90s": 90_000,
    "30m": 1_800_000,
    "24h": 86_400_000,
    "7d": 604_800_000,
    "2w": 1_209_600_000,
    "1h30m": 5_400_000,
    "1w2d3h4m5s6ms": 788_645_006,
    "1m5ms": 60_005,
    "0s": 0,
    "36500d": LONGEST,
}

BAD = (
    "",
    " ",
    "abc",
    "90",
    "1.5h",
    "-1h",
    "+1h",
    "1h 30m",
    " 1h",
    "1h\n",
    "30m1h",
    "1h1h",
    "1H",
    "1min",
    "1y",
    "h",
    "٣h",
    "1e3s",
    "PT1H",
    "36501d",
    "9" * 400 + "s",
)


@pytest.mark.parametrize(("text", "milliseconds"), GOOD.items())
def test_reads(text: str, milliseconds: int) -> None:
    assert parse_duration(text) == milliseconds
    assert parse_duration(format_duration(milliseconds)) == milliseconds


@pytest.mark.parametrize("text", BAD)
def test_refuses(text: str) -> None:
    with pytest.raises(ModelError) as raised:
        parse_duration(text, Location("p.yaml", 3))
    assert str(raised.value).startswith(f"p.yaml:3: '{text}' is not a duration\n  hint: ")


def test_writes_as_an_author_would() -> None:
    written = [format_duration(ms) for ms in (0, 1, 90_000, 86_400_000, 604_800_000, 691_200_000)]
    assert written == ["0s", "1ms", "1m30s", "1d", "1w", "8d"]
