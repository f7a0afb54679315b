"""Random flows over tables: topics, a query or two, records, and cuts, all from one seed."""

# pyright: basic

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tests.property.dice import Dice
from tests.property.table_records import OP, batches
from tests.reference.records import Batch

COLUMNS = {"id": "VARCHAR", "f": "VARCHAR", "g": "INTEGER", "n": "INTEGER", "s": "VARCHAR"}
_KINDS = ["JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]
_NUMBERS = ["n", "g"]


@dataclass(frozen=True, kw_only=True)
class TableFlow:
    """A pipeline over tables and what it is given."""

    author: Mapping[str, Any]
    """The pipeline as in a file."""
    batches: tuple[Batch, ...]

    @property
    def columns(self) -> dict[str, dict[str, str]]:
        """The column types of its topics."""
        return {name: spec["columns"] for name, spec in self.author["topics"].items()}

    @property
    def partitions(self) -> dict[str, int]:
        """How many partitions each topic has."""
        read = [record for batch in self.batches for record in batch.records]
        return {
            name: 1 + max((r.partition for r in read if r.topic == name), default=0)
            for name in self.columns
        }


def random_flow(seed: int) -> TableFlow:
    """Make the flow of a seed."""
    dice = Dice(f"tables {seed}")
    topics = {name: topic_of(dice) for name in dice.pick(["a", "ab", "ab", "abc"])}
    author = _author(dice, topics)
    used = [name for name in topics if _reads(author, name)]
    author["topics"] = {name: topics[name] for name in used}
    return TableFlow(author=author, batches=batches(dice, author["topics"]))


def _reads(author: Mapping[str, Any], topic: str) -> bool:
    texts = [each["query"] for each in author["relations"].values()]
    texts += [output["query"] for output in author["outputs"] if "query" in output]
    return any(f" {topic} AS " in text for text in texts)


def topic_of(dice: Dice) -> dict[str, Any]:
    spec: dict[str, Any] = {"columns": dict(COLUMNS), "table": True}
    if kind := dice.pick([None, None, ["id"], ["id"], ["id"], ["id", "g"]]):
        spec["primary_key"] = kind
    if dice.one_in(8):
        spec["operation"] = dice.pick([f"header:{OP}", f"column:{OP}"])
        spec["columns"][OP] = "VARCHAR"
    return spec


def _author(dice: Dice, topics: Mapping[str, Any]) -> dict[str, Any]:
    aliases, tables = _tables(dice, topics)
    common = _where(dice, aliases) if dice.one_in(3) else []
    made = {"name": "random", "relations": {}, "outputs": []}
    shared = dice.one_in(4)
    if shared:
        shown = ", ".join(f"{a}.{c} AS {a}_{c}" for a in aliases for c in COLUMNS)
        text = f"SELECT {shown} {tables} {_written(common)}"
        made["relations"]["joined"] = {"query": text}
    for place in range(dice.pick([1, 1, 1, 2])):
        where = (_where(dice, aliases) if dice.one_in(3) else []) + ([] if shared else common)
        rest = f"{'FROM joined' if shared else tables} {{where}}"
        grouped = dice.one_in(2)
        query = grouped_query(dice, aliases, rest) if grouped else rows_query(dice, aliases, rest)
        query = query.replace("{where}", _written(list(dict.fromkeys(where))))
        for alias in aliases if shared else ():
            head, _, tail = query.partition("FROM")
            query = f"{_flat(head, alias)}FROM{_flat(tail, alias)}"
        output = {"query": " ".join(query.split()), "topic": f"out{place}", "format": "json"}
        if dice.one_in(2):
            output["coalesce"] = "none"
        elif dice.one_in(3):
            output["every"] = dice.pick(["1s", "4s", "10s", "1h"])
        made["outputs"].append(output)
    if len(made["outputs"]) == len(aliases) == 1 and dice.one_in(3):
        _order(dice, made["outputs"][0])
    made["partitions"] = 2
    made["dimensions_first"] = False
    return made


def _tables(dice: Dice, topics: Mapping[str, Any]) -> tuple[list[str], str]:
    """Return the aliases of joined tables, and FROM with its joins."""
    sources = [("x", dice.pick(list(topics)))]
    for alias in "yz"[: dice.pick([0, 0, 1, 1, 1, 1, 2])]:
        sources.append((alias, dice.pick(list(topics))))
    tables = f"FROM {sources[0][1]} AS x"
    for place, (alias, topic) in enumerate(sources[1:], 1):
        before = sources[dice.number(0, place - 1)]
        kind = dice.pick(_KINDS)
        tables += f" {kind} {topic} AS {alias} ON {joined_on(dice, topics, before, alias, topic)}"
    return [alias for alias, _ in sources], tables


def random_union(seed: int) -> TableFlow:
    """Make the flow of a seed whose first output is a UNION ALL of tables."""
    dice = Dice(f"table unions {seed}")
    topics = {name: topic_of(dice) for name in dice.pick(["a", "ab", "ab", "abc"])}
    labels = dice.pick([["'p'", "'q'", "'r'"], ["1", "2", "3"]])[: dice.pick([2, 2, 3])]
    at = dice.number(0, 2)
    branches: list[str] = []
    read = _tables(dice, topics)
    for label in labels:
        branches.append(_branch(dice, *read, label, at))
        read = read if dice.one_in(3) else _tables(dice, topics)
    output = {"query": " UNION ALL ".join(branches), "topic": "out0", "format": "json"}
    if dice.one_in(2):
        output["coalesce"] = "none"
    elif dice.one_in(3):
        output["every"] = dice.pick(["1s", "4s", "10s", "1h"])
    made = {"name": "random", "relations": {}, "outputs": [output]}
    if dice.one_in(3):
        alone = {"query": branches[0], "topic": "out1", "format": "json", "coalesce": "none"}
        made["outputs"].append(alone)
    made |= {"partitions": 2, "dimensions_first": False}
    used = [name for name in topics if _reads(made, name)]
    made["topics"] = {name: topics[name] for name in used}
    return TableFlow(author=made, batches=batches(dice, made["topics"]))


def random_grouped_union(seed: int) -> TableFlow:
    """Make the flow of a seed whose only output groups a UNION ALL of tables."""
    dice, flow = Dice(f"grouped unions {seed}"), random_union(seed)
    output = dict(flow.author["outputs"][0])
    output.pop("every", None)
    keys = dice.some(["u.label", "u.v", "u.n % 2"], 2)
    calls = [_call_of_union(dice) for _ in range(dice.pick([1, 2, 3]))]
    items = [f"{key} AS k{n}" for n, key in enumerate(keys)]
    items += [f"{call} AS c{n}" for n, call in enumerate(calls)]
    by = f" GROUP BY {', '.join(keys)}" if keys else ""
    where = dice.pick(["", "", " WHERE u.n > 0"])
    output["query"] = f"SELECT {', '.join(items)} FROM ({output['query']}) u{where}{by}"
    return replace(flow, author={**flow.author, "outputs": [output]})


def _call_of_union(dice: Dice) -> str:
    return dice.pick(
        [
            "count(*)", "sum(u.n)", "max(u.v)", "count(DISTINCT u.v)", "median(u.n)",
            "bool_or(u.n > 1)", "string_agg(u.v, '-' ORDER BY u.v)", "min(u.n)", "count(u.n)",
        ]
    )  # fmt: skip


def _branch(dice: Dice, aliases: list[str], tables: str, label: str, at: int) -> str:
    """Return one SELECT: two columns, and at one place the label of the branch."""
    a = dice.pick(aliases)
    where = _written(_where(dice, aliases)) if dice.one_in(3) else ""
    rest = f"{tables} {where}"
    if dice.one_in(3):
        key = dice.pick([f"{a}.f", f"{a}.s", None])
        items = [f"{key or 'min(' + a + '.s)'} AS v", f"{_call_of_numbers(dice, a)} AS n"]
        rest += f" GROUP BY {key}" if key else ""
    else:
        items = [f"{a}.{dice.pick(['f', 's', 'id'])} AS v", f"{_item(dice, a, 'n')} AS n"]
    items.insert(at, f"{label} AS label")
    return " ".join(f"SELECT {', '.join(items)} {rest}".split())


def _call_of_numbers(dice: Dice, a: str) -> str:
    return dice.pick(["count(*)", f"max({a}.n)", f"sum({a}.g)", f"count(DISTINCT {a}.n)"])


def _flat(text: str, alias: str) -> str:
    """Write the columns of an alias as a relation over it shows them."""
    for column in COLUMNS:
        text = text.replace(f"{alias}.{column}", f"{alias}_{column}")
    return text


def joined_on(
    dice: Dice, topics: Mapping[str, Any], before: tuple[str, str], alias: str, topic: str
) -> str:
    keys = topics[topic].get("primary_key") or ["_key"]
    left_keys = topics[before[1]].get("primary_key") or ["_key"]
    kind = dice.pick(
        ["keys", "keys", "foreign", "foreign", "foreign", "other way", "columns", "both"]
    )
    if kind == "keys" and len(keys) == len(left_keys):
        pairs = list(zip(left_keys, keys, strict=True))
    elif kind in ("keys", "foreign"):
        pairs = list(zip(["f", "g"], keys, strict=False))
    elif kind == "other way":
        pairs = list(zip(left_keys, ["f", "g"], strict=False))
    elif kind == "columns":
        pairs = [dice.pick([("g", "g"), ("s", "s"), ("n", "g")])]
    else:
        pairs = [("f", "f"), ("g", "g")]
    parts = [(f"{before[0]}.{left}", f"{alias}.{right}") for left, right in pairs]
    return " AND ".join(" = ".join(reversed(p) if dice.one_in(4) else p) for p in parts)


def _where(dice: Dice, aliases: list[str]) -> list[str]:
    found = [condition_of(dice, dice.pick(aliases))]
    return [*found, condition_of(dice, dice.pick(aliases))] if dice.one_in(3) else found


def condition_of(dice: Dice, alias: str) -> str:
    choices = [
        f"{alias}.n > 1",
        f"{alias}.n <> 2",
        f"{alias}.g IS DISTINCT FROM 1",
        f"{alias}.s IS NULL",
        f"{alias}.s IS NOT NULL",
        f"({alias}.n = 1 OR {alias}.g = 2)",
    ]
    return f"{alias}.s::INTEGER > 0" if dice.one_in(25) else dice.pick(choices)


def _written(where: list[str]) -> str:
    return f"WHERE {' AND '.join(where)}" if where else ""


def rows_query(dice: Dice, aliases: list[str], rest: str) -> str:
    columns = [(a, c) for a in aliases for c in COLUMNS]
    shown = dice.some(columns, 4) or [columns[0]]
    items = [f"{_item(dice, a, c)} AS {a}{c}" for a, c in shown]
    return f"SELECT {', '.join(items)} {rest}"


def _item(dice: Dice, alias: str, column: str) -> str:
    if column == "s" and dice.one_in(8):
        return f"{alias}.s::INTEGER"
    if column in _NUMBERS and dice.one_in(3):
        return dice.pick([f"coalesce({alias}.{column}, -1)", f"{alias}.{column} * 2"])
    return f"{alias}.{column}"


def grouped_query(dice: Dice, aliases: list[str], rest: str) -> str:
    keys = [
        dice.pick([f"{a}.g", f"{a}.g", f"{a}.s", f"{a}.n % 2", f"{a}.f"])
        for a in dice.some(aliases, dice.pick([0, 1, 1, 1, 2]))
    ]
    calls = [_call(dice, dice.pick(aliases)) for _ in range(dice.pick([1, 1, 2, 3]))]
    items = [f"{key} AS k{n}" for n, key in enumerate(keys)]
    items += [f"{call} AS c{n}" for n, call in enumerate(calls)]
    by = f"GROUP BY {', '.join(keys)}" if keys else ""
    having = dice.pick(["count(*) > 1", "count(*) < 3", f"sum({aliases[0]}.n) > 2"])
    return f"SELECT {', '.join(items)} {rest} {by} {'HAVING ' + having if dice.one_in(4) else ''}"


def _order(dice: Dice, output: dict[str, Any]) -> None:
    """Let a call depend on the order in which rows took their form."""
    calls = ["list(x.n)", "first(x.s)", "last(x.n)", "string_agg(x.s, ',')", "any_value(x.s)"]
    if " AS c0" in output["query"] and "FROM joined" not in output["query"]:
        added = f", {dice.pick(calls)} AS ordered FROM "
        output["query"] = output["query"].replace(" FROM ", added, 1)
        output["coalesce"] = "none"
        output.pop("every", None)


def _call(dice: Dice, a: str) -> str:
    if dice.one_in(25):
        return dice.pick([f"sum({a}.s::INTEGER)", f"(sum({a}.n) * 60)::UTINYINT"])
    return dice.pick(
        [
            "count(*)", f"count({a}.n)", f"sum({a}.n)", f"avg({a}.n)", f"min({a}.n)",
            f"max({a}.s)", f"median({a}.n)", f"count(DISTINCT {a}.s)", f"bool_or({a}.n > 2)",
            f"bool_and({a}.n > 1)", f"bit_xor({a}.n)", f"list({a}.s ORDER BY {a}.s, {a}.n)",
            f"string_agg({a}.s, '-' ORDER BY {a}.s)", f"sum({a}.n) FILTER (WHERE {a}.g = 1)",
            f"count_if({a}.n > 1)", f"quantile_disc({a}.n, 0.5)", f"sum({a}.n::DOUBLE)",
            f"avg({a}.n::DECIMAL(9, 2))", f"sum(DISTINCT {a}.n)", f"max({a}.n) - min({a}.n)",
        ]
    )  # fmt: skip
