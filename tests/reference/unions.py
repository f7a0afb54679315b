"""The branches of a UNION ALL: names of the first one, and types that fit all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from tests.reference.conditions import Call, Term
from tests.reference.pipeline import Chain, Output, Unnest

Columns = Mapping[str, Mapping[str, str]]
"""The types of the columns of topics."""

OF_RECORDS = {"_key": "VARCHAR", "_topic": "VARCHAR", "_partition": "INTEGER", "_offset": "BIGINT"}
"""Columns that every record has; others are no plain values."""
_NUMBERS = {"SMALLINT", "INTEGER", "BIGINT"}
"""Unlike other numbers they look the same in every type."""


class NotExpressible(Exception):
    """A query that the oracle cannot read."""


class Branch(Protocol):
    """One SELECT."""

    @property
    def chain(self) -> Chain:
        """What it reads."""
        ...

    @property
    def select(self) -> tuple[Output, ...]:
        """Its columns."""
        ...

    @property
    def unnests(self) -> tuple[Unnest, ...]:
        """The lists that become rows."""
        ...


def united(branches: Sequence[Branch], columns: Columns) -> list[tuple[Output, ...]]:
    """Return the columns of each branch under the names and with the types of the union.

    Raises:
        NotExpressible: Types that the oracle cannot bring together.
    """
    first, *others = branches
    if any(len(each.select) != len(first.select) for each in others):
        raise NotExpressible("branches of different width")
    kinds = [_kinds(branch, columns) for branch in branches]
    texts = [_as_text(set(each)) for each in zip(*kinds, strict=True)]
    return [
        tuple(
            replace(each, name=named.name, as_text=each.as_text or (text and kind in _NUMBERS))
            for each, named, text, kind in zip(branch.select, first.select, texts, own, strict=True)
        )
        for branch, own in zip(branches, kinds, strict=True)
    ]


def _as_text(kinds: set[str]) -> bool:
    """Tell whether numbers become text beside others."""
    if len(kinds) == 1 or kinds <= _NUMBERS:
        return False
    if kinds <= {"VARCHAR", *_NUMBERS}:
        return True
    raise NotExpressible(str(kinds))


def _kinds(branch: Branch, columns: Columns) -> list[str]:
    return [
        "VARCHAR" if each.as_text else kind_of(branch, each.term, columns) for each in branch.select
    ]


def kind_of(branch: Branch, term: Term, columns: Columns) -> str:
    """Return the type of what a branch selects."""
    if isinstance(term, Call):
        return "BIGINT" if term.function == "integer" else kind_of(branch, term.column, columns)
    unnest = next((each for each in branch.unnests if each.alias == term.alias), None)
    if unnest is not None:
        return kind_of(branch, unnest.list, columns).removesuffix("[]")
    topics = {join.alias: join.topic for join in branch.chain.joins}
    topics[branch.chain.driving] = branch.chain.driving_topic
    own = columns[topics[term.alias]]
    return own.get(term.name) or OF_RECORDS[term.name]
