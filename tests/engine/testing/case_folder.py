"""The cases beside it, read once for all tests that run them."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from kaflow_engine.testing.cases.files import find_cases, load_cases
from kaflow_engine.testing.cases.specs import Case

FOLDER = Path(__file__).parent / "cases"


@cache
def read_cases() -> Mapping[Path, tuple[Case, ...]]:
    """Return the cases of each file, which expand no variable."""
    return {file: load_cases(file, {}) for file in find_cases([FOLDER])}
