"""Joins of two tables by the Kafka key, and what DuckDB says their rows are."""

# pyright: basic

import json

from kaflow_engine.duck.queries import query
from kaflow_engine.duck.quoting import literal
from tests.engine.operators.table.flows import (
    Running,
    flow,
    record,
    rekeyed,
    table,
    table_join,
)

LAYOUTS = {
    "join": (("l._key", "r._key"), ('coalesce("l._key", "r._key")',), ()),
    "left": (("l.k", "r._key"), ('"l._key"',), ("l._key",)),
    "right": (("l._key", "r.k"), ('"r._key"',), ("r._key",)),
    "pair": (("l.k", "r.k"), ('"l._key"', '"r._key"'), ("l._key", "r._key")),
}
"""By what tells rows apart: the condition, the key of the output, and that behind the join."""

KINDS = {
    "join": ("INNER", "LEFT", "RIGHT", "FULL"),
    "left": ("INNER", "LEFT"),
    "right": ("INNER", "RIGHT"),
    "pair": ("INNER", "LEFT", "RIGHT", "FULL"),
}
CASES = [(key, kind) for key, kinds in KINDS.items() for kind in kinds]
SHOWN = ("a", "x", "b", "y")
SELECT = {
    "a": ("VARCHAR", '"l._key"'),
    "x": ("INTEGER", '"l.v"'),
    "b": ("VARCHAR", '"r._key"'),
    "y": ("INTEGER", '"r.v"'),
}


class Joined:
    """A join that runs, and the same tables in DuckDB.

    Args:
        key: Of LAYOUTS.
        kind: Of the join.
        each: Every change leaves.
        spread: In several tasks.
        own: Both sides are tables of one topic.
    """

    def __init__(self, key, kind, *, each=True, spread=False, own=False):
        on, texts, names = LAYOUTS[key]
        self.topics = ("t", "t") if own else ("l", "r")
        left = table(1, "l", self.topics[0], key="_key", each=each)
        right = table(2, "r", self.topics[1], key="_key", each=each)
        join = table_join(3, left, right, [on], kind, key, each)
        behind = [rekeyed(4, join, *names, each=each)] if names else []
        given = flow(left, right, join, *behind, keys=texts, select=SELECT)
        self.run = Running(given, spread, SHOWN)
        keys = ", ".join(texts)
        self.sql = (
            f"SELECT to_json([{keys}]::VARCHAR[])::VARCHAR, "
            f'"l._key", "l.v", "r._key", "r.v" AS rv FROM l {kind} JOIN r ON "{on[0]}" = "{on[1]}"'
        )
        self.rows = {name: {} for name in self.topics}
        self.written = {}
        self.time = 0

    def feed(self, *waves):
        """Records in one batch: (topic, key, (k, v) or None to delete).

        Args:
            waves: Records, those of one wave touch no rows of each other.

        Returns:
            What left, as (key, values), and what would, record after record, by key.
        """
        given, wanted = [], []
        after = self.expected()
        for wave in waves:
            for of, key, values in wave:
                self.time += 1
                row = None if values is None else (0, *values)
                given.append(record(of, row, ts=self.time, key=key))
                if values is None:
                    self.rows[of].pop(key, None)
                else:
                    self.rows[of][key] = values
            before, after = after, self.expected()
            wanted += [
                (name, after.get(name))
                for name in sorted(before.keys() | after.keys())
                if before.get(name) != after.get(name)
            ]
        found = [(json.dumps(key), values) for key, _, values in self.run.batch(*given)]
        for key, values in found:
            if values is None:
                assert self.written.pop(key, None) is not None
            else:
                assert self.written.get(key) != values
                self.written[key] = values
        assert self.written == after
        return found, wanted

    def expected(self):
        """The rows of the join, by their keys."""
        tables = [
            f"{alias} AS (SELECT * FROM (VALUES {', '.join(map(_row, self.rows[of].items()))}, "
            f'(NULL, NULL, NULL)) AS t("{alias}._key", "{alias}.k", "{alias}.v") '
            f'WHERE "{alias}._key" IS NOT NULL)'
            for alias, of in zip(("l", "r"), self.topics, strict=True)
        ]
        found = query(f"WITH {', '.join(tables)} {self.sql}".replace("VALUES ,", "VALUES"))
        found = [tuple(row.values()) for row in found.to_pylist()]
        rows = {json.dumps(json.loads(key)): list(values) for key, *values in found}
        assert len(rows) == len(found)
        return rows


def _row(entry):
    key, (k, v) = entry
    return f"({literal(key)}, {'NULL' if k is None else literal(k)}::VARCHAR, {v})"
