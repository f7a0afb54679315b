"""Random flows over tables: topics, a query or two, records, and cuts, all from one seed."""

# pyright: basic

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.property.dice import Dice
from tests.property.strategies import T0
from tests.reference.records import Batch, Record

COLUMNS = {"id": "VARCHAR", "f": "VARCHAR", "g": "INTEGER", "n": "INTEGER", "s": "VARCHAR"}
OP = "op"
_KEYS = ["1", "1", "2", "2", "3", "4"]
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
    topics = {name: _topic(dice) for name in dice.pick(["a", "ab", "ab", "abc"])}
    author = _author(dice, topics)
    used = [name for name in topics if _reads(author, name)]
    author["topics"] = {name: topics[name] for name in used}
    return TableFlow(author=author, batches=_batches(dice, author["topics"]))


def _reads(author: Mapping[str, Any], topic: str) -> bool:
    texts = [each["query"] for each in author["relations"].values()]
    texts += [output["query"] for output in author["outputs"] if "query" in output]
    return any(f" {topic} AS " in text for text in texts)


def _topic(dice: Dice) -> dict[str, Any]:
    spec: dict[str, Any] = {"columns": dict(COLUMNS), "table": True}
    if kind := dice.pick([None, None, ["id"], ["id"], ["id"], ["id", "g"]]):
        spec["primary_key"] = kind
    if dice.one_in(8):
        spec["operation"] = dice.pick([f"header:{OP}", f"column:{OP}"])
        spec["columns"][OP] = "VARCHAR"
    return spec


def _author(dice: Dice, topics: Mapping[str, Any]) -> dict[str, Any]:
    sources = [("x", dice.pick(list(topics)))]
    for alias in "yz"[: dice.pick([0, 0, 1, 1, 1, 1, 2])]:
        sources.append((alias, dice.pick(list(topics))))
    aliases = [alias for alias, _ in sources]
    tables = f"FROM {sources[0][1]} AS x"
    for place, (alias, topic) in enumerate(sources[1:], 1):
        before = sources[dice.number(0, place - 1)]
        tables += (
            f" {dice.pick(_KINDS)} {topic} AS {alias} ON {_on(dice, topics, before, alias, topic)}"
        )
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
        query = _grouped(dice, aliases, rest) if grouped else _rows(dice, aliases, rest)
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


def _flat(text: str, alias: str) -> str:
    """Write the columns of an alias as a relation over it shows them."""
    for column in COLUMNS:
        text = text.replace(f"{alias}.{column}", f"{alias}_{column}")
    return text


def _on(
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
    found = [_condition(dice, dice.pick(aliases))]
    return [*found, _condition(dice, dice.pick(aliases))] if dice.one_in(3) else found


def _condition(dice: Dice, alias: str) -> str:
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


def _rows(dice: Dice, aliases: list[str], rest: str) -> str:
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


def _grouped(dice: Dice, aliases: list[str], rest: str) -> str:
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


def _batches(dice: Dice, topics: Mapping[str, Any]) -> tuple[Batch, ...]:
    made: list[Batch] = []
    offsets: Counter[tuple[str, int]] = Counter()
    spread = {name: dice.pick([1, 1, 2]) for name in topics}
    now = 0
    for _ in range(dice.pick([1, 2, 2, 3, 4])):
        records: list[Record] = []
        for _ in range(dice.pick([1, 2, 3, 4, 5, 6, 8])):
            now += dice.pick([0, 1, 1, 2])
            record = _record(dice, topics, spread, T0 + (now + dice.pick([0, 0, 0, -3])) * 1000)
            place = record.topic, record.partition
            records.append(_placed(record, offsets[place]))
            offsets[place] += 1
        made.append(Batch(time=T0 + now * 1000 + 5_000, records=tuple(records)))
    return tuple(made)


def _placed(record: Record, offset: int) -> Record:
    return Record(
        topic=record.topic,
        partition=record.partition,
        offset=offset,
        ts=record.ts,
        key=record.key,
        value=record.value,
        raw=record.raw,
        headers=record.headers,
    )


def _record(dice: Dice, topics: Mapping[str, Any], spread: Mapping[str, int], ts: int) -> Record:
    topic = dice.pick(list(topics))
    spec = topics[topic]
    key = None if dice.one_in(25) else dice.pick(_KEYS)
    partition = int(key or 0) % spread[topic]
    if dice.one_in(40):
        return Record(topic=topic, offset=-1, ts=ts, partition=partition, key=key, raw=b"{")
    if dice.one_in(5):
        return Record(topic=topic, offset=-1, ts=ts, partition=partition, key=key)
    value: dict[str, Any] = {
        "id": None if dice.one_in(25) else key,
        "f": dice.pick([*_KEYS, None]),
        "g": dice.pick([1, 1, 2, None]),
        "n": dice.pick([1, 2, 3, None]),
        "s": dice.pick(["1", "2", "3", "x"] if dice.one_in(3) else ["1", "2", None]),
    }
    headers: dict[str, str] = {}
    if operation := spec.get("operation"):
        said = dice.pick(["c", "u", "r", "i", None, "d", "d"])
        if operation.startswith("column"):
            value[OP] = said
        elif said is not None:
            headers[OP] = said
    return Record(
        topic=topic,
        offset=-1,
        ts=ts,
        partition=partition,
        key=key,
        value=value,
        headers=headers,
    )
