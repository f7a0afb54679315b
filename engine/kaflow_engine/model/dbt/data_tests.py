"""`data_tests:` of a property file → the `checks:` of a pipeline file."""

from collections.abc import Iterator

from kaflow_engine.errors import ModelError
from kaflow_engine.model.files.tree import Entries, Entry, Items, Node, Scalar, describe

_BESIDE = ("name", "description")


def data_tests(model: Entries) -> Iterator[Entries]:
    """Yield the checks of a model, those of its columns first.

    Raises:
        ModelError: A test is neither a name nor a mapping.
    """
    columns = model.get("columns")
    for column in columns.items if isinstance(columns, Items) else ():
        name = column.get("name") if isinstance(column, Entries) else None
        tests = column.get("data_tests") if isinstance(column, Entries) else None
        for test in tests.items if isinstance(tests, Items) else ():
            yield _check(test, name)
    tests = model.get("data_tests")
    for test in tests.items if isinstance(tests, Items) else ():
        yield _check(test, None)


def _check(test: Node, column: Node | None) -> Entries:
    """Build one check; `column` is the one below which it stands."""
    own = () if column is None else (Entry(key="column", at=test.at, value=column),)
    if isinstance(test, Scalar) and test.text is not None:
        kind = Entry(key=test.text, at=test.at, value=Entries(at=test.at, entries=own))
        return Entries(at=test.at, entries=(kind,))
    if not isinstance(test, Entries):
        hint = "write - not_null, or - accepted_values: {values: [a, b]}"
        raise ModelError(f"expected a test, found {describe(test)}", test.at, hint)
    beside: list[Entry] = []
    found: list[Entry] = []
    for entry in test.entries:
        if entry.key in _BESIDE:
            beside.append(entry)
        elif entry.key == "config":
            beside += _severity(entry)
        elif isinstance(entry.value, Entries):
            kept, more = _arguments(entry.value)
            beside += more
            value = Entries(at=entry.at, entries=(*own, *kept))
            found.append(Entry(key=entry.key, at=entry.at, value=value))
        else:
            found.append(entry)
    return Entries(at=test.at, entries=(*found, *beside))


def _arguments(given: Entries) -> tuple[list[Entry], list[Entry]]:
    """Return the arguments of a test, and what dbt writes among them."""
    kept: list[Entry] = []
    beside: list[Entry] = []
    for entry in given.entries:
        if entry.key in _BESIDE:
            beside.append(entry)
        elif entry.key == "config":
            beside += _severity(entry)
        elif entry.key == "arguments" and isinstance(entry.value, Entries):
            kept += entry.value.entries
        else:
            kept.append(entry)
    return kept, beside


def _severity(config: Entry) -> Iterator[Entry]:
    for entry in config.value.entries if isinstance(config.value, Entries) else ():
        if entry.key == "severity":
            yield entry
