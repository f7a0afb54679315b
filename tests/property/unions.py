"""Outputs of a random pipeline that are unions."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from tests.property.dice import Dice
from tests.reference.conditions import (
    AllOf,
    AnyOf,
    Column,
    Compare,
    Condition,
    IsNull,
    Negated,
    columns_of,
)
from tests.reference.pipeline import OraclePipeline, Write
from tests.reference.unions import united


def with_types(pipeline: OraclePipeline) -> OraclePipeline:
    """Return a pipeline in which the branches of each union have names and types in common."""
    columns = {name: topic.columns for name, topic in pipeline.topics.items()}
    selects = [select for branches in pipeline.outputs for select in united(branches, columns)]
    writes = [write for branches in pipeline.outputs for write in branches]
    return replace(
        pipeline,
        writes=tuple(replace(w, select=s) for w, s in zip(writes, selects, strict=True)),
    )


def common_where(branches: Sequence[Write]) -> list[tuple[Condition, ...]]:
    """Return of each branch what can be asked of the rows of the union instead: conditions over
    the same columns of the output, which are plain in all branches.
    """
    first, *others = branches
    moves = [_moves(first, other) for other in others]
    found = [
        [condition, *(moved(condition, move) for move in moves)]
        for condition in first.where
        if all(columns_of(condition) <= set(move) for move in moves)
    ]
    common = [
        each
        for each in found
        if all(part in write.where for part, write in zip(each, branches, strict=True))
    ]
    return [tuple(each[place] for each in common) for place in range(len(branches))]


def asked_of_all(dice: Dice, branches: Sequence[Write]) -> list[Write]:
    """Return the branches with one more condition, the same one over a column of the output."""
    first, *others = branches
    columns = set[Column]()
    for each in first.select:
        if isinstance(each.term, Column):
            columns.add(each.term)
    moves = [_moves(first, other) for other in others]
    plain = sorted((c for c in columns if all(c in move for move in moves)), key=repr)
    if not plain:
        return list(branches)
    condition = IsNull(dice.pick(plain), negated=dice.one_in(2))
    asked = [condition, *(moved(condition, move) for move in moves)]
    both = zip(branches, asked, strict=True)
    return [replace(write, where=(*write.where, own)) for write, own in both]


def _moves(first: Write, other: Write) -> dict[Column, Column]:
    """Return which columns of two branches stand at one place, as they are: the first one that has
    the column of the first branch.
    """
    found: dict[Column, Column] = {}
    seen = set[Column]()
    for one, two in zip(first.select, other.select, strict=True):
        if not isinstance(one.term, Column) or one.term in seen:
            continue
        seen.add(one.term)
        if isinstance(two.term, Column) and not one.as_text and not two.as_text:
            found[one.term] = two.term
    return found


def moved(condition: Condition, move: Mapping[Column, Column]) -> Condition:
    """Return a condition over other columns."""
    match condition:
        case Compare(column):
            return replace(condition, column=move[column])
        case IsNull(column):
            return replace(condition, column=move[column])
        case AnyOf(parts):
            return AnyOf(tuple(moved(part, move) for part in parts))
        case AllOf(parts):
            return AllOf(tuple(moved(part, move) for part in parts))
        case Negated(part):
            return Negated(moved(part, move))
        case _:
            assert_never(condition)
