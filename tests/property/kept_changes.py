"""Random flows over what becomes a table: changes that are grouped or joined, dimensions."""

# pyright: basic

from typing import Any

from tests.property.dice import Dice
from tests.property.table_records import OP, batches
from tests.property.tables import (
    COLUMNS,
    TableFlow,
    condition_of,
    grouped_query,
    joined_on,
    rows_query,
    topic_of,
)


def random_changes(seed: int) -> TableFlow:
    """Make the flow of a seed that groups changes of rows, or joins them to a table."""
    dice = Dice(f"kept changes {seed}")
    changes = {"columns": {**COLUMNS, OP: "VARCHAR"}, "primary_key": ["id"]}
    changes["operation"] = dice.pick([f"header:{OP}", f"column:{OP}"])
    topics: dict[str, Any] = {"a": changes}
    aliases, tables = ["x"], "FROM a AS x"
    if dice.one_in(2):
        topics["b"] = topic_of(dice)
        kind = dice.pick(["LEFT JOIN", "LEFT JOIN", "FULL JOIN"])
        on = joined_on(dice, topics, ("x", "b"), "y", "a")
        aliases, tables = ["x", "y"], f"FROM b AS x {kind} a AS y ON {on}"
    return _flow(dice, topics, aliases, tables)


def random_dimensions(seed: int) -> TableFlow:
    """Make the flow of a seed that joins a dimension to a table."""
    dice = Dice(f"dimensions {seed}")
    topics: dict[str, Any] = {"a": {"columns": dict(COLUMNS)}, "b": topic_of(dice)}
    left = dice.pick(["id", "f", "g", "s"])
    right = left if left == "g" else dice.pick(["id", "f", "s"])
    kind = dice.pick(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
    first, second = dice.pick(["ab", "ba"])
    tables = f"FROM {first} AS x {kind} {second} AS y ON x.{left} = y.{right}"
    return _flow(dice, topics, ["x", "y"], tables, state={"dimensions": ["a"]})


def _flow(
    dice: Dice, topics: dict[str, Any], aliases: list[str], tables: str, **said: Any
) -> TableFlow:
    outputs: list[dict[str, Any]] = []
    for place in range(dice.pick([1, 1, 2])):
        where = f"WHERE {condition_of(dice, dice.pick(aliases))}" if dice.one_in(3) else ""
        made = rows_query if len(aliases) > 1 and dice.one_in(2) else grouped_query
        query = " ".join(made(dice, aliases, f"{tables} {where}").split())
        output = {"query": query, "topic": f"out{place}", "format": "json"}
        outputs.append({**output, **dice.pick([{}, {"coalesce": "none"}])})
    author = {
        "name": "random",
        "relations": {},
        "outputs": outputs,
        "partitions": 2,
        "dimensions_first": False,
        "topics": topics,
        **said,
    }
    return TableFlow(author=author, batches=batches(dice, topics))
