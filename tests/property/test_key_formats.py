"""Keys in other formats mean what the same keys mean as text, whatever the records and the batches.

A case is a seed: it draws a query, records with and without values and keys, and where batches end.
"""
# pyright: basic

from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
import yaml

from kaflow_engine.testing.cases.executor import LocalExecutor
from kaflow_engine.testing.cases.files import load_cases
from kaflow_engine.testing.cases.pipeline import Surroundings, plan_case
from kaflow_engine.testing.cases.records import (
    emitted_rows,
    partitions_of,
    records_table,
    wire_of,
    written_letters,
)

pytestmark = pytest.mark.slow

START = 1_767_225_600_000
SECOND = 1_000
COLUMNS = {
    "t": {"columns": {"v": "INTEGER"}},
    "e": {"columns": {"k": "BIGINT", "n": "INTEGER"}},
}
NONE = {"coalesce": "none", "format": "json", "topic": "out"}


def a_table(form: str) -> dict:
    number = "_key" if form != "text" else "CAST(_key AS BIGINT)"
    return {
        "query": f"SELECT {number} AS id, v FROM t WHERE v > 0",
        "output": NONE | ({} if form == "text" else {"key_format": form}),
        "topics": {"t": {**COLUMNS["t"], "table": True, "key_format": form}},
    }


def a_dimension(form: str) -> dict:
    other = "e.k" if form != "text" else "CAST(e.k AS VARCHAR)"
    return {
        "query": f"SELECT e._key AS _key, e.n, d.v FROM e LEFT JOIN t d ON {other} = d._key",
        "output": {"topic": "out", "format": "json"},
        "state": {"dimensions": ["t"]},
        "topics": {name: {**said, "key_format": form} for name, said in COLUMNS.items()},
    }


def groups(form: str) -> dict:
    number = "_key" if form != "text" else "CAST(_key AS BIGINT)"
    return {
        "query": f"SELECT {number} AS k, count(*) AS c FROM e WHERE _key IS NOT NULL GROUP BY ALL",
        "output": NONE | ({} if form == "text" else {"key_format": form}),
        "topics": {"e": {**COLUMNS["e"], "key_format": form}},
    }


QUERIES = (a_table, a_dimension, groups)


def drawn(rng: Random) -> list[dict]:
    """Draw records of both topics; a key may be none that a number is."""
    given: list[dict] = []
    for number in range(rng.randrange(1, 25)):
        topic = rng.choice("te")
        key = rng.choice([None, "1", "2", "-3", "2147483647"])
        value = {"v": rng.randrange(-1, 3)} if topic == "t" else {"k": rng.choice([1, 2, -3])}
        value |= {"n": number} if topic == "e" else {}
        record = {"topic": topic, "at": START + number * SECOND, "value": value}
        record |= {} if key is None else {"key": key}
        given.append(record | ({"value": None} if rng.random() < 0.2 else {}))
    return given


def ran(path: Path, pipeline: dict, given: list[dict], cuts: list[int], *, replay: bool) -> tuple:
    """Run a pipeline; returns its rows and dead letters."""
    read = [record for record in given if record["topic"] in pipeline["topics"]]
    case = {"case": "c", "pipeline": {"name": "p", **pipeline}, "given": read, "expect": []}
    path.write_text(yaml.safe_dump([case]))
    (loaded,) = load_cases(path, {})
    wire = wire_of(plan_case(loaded, Surroundings(variables={})))
    session = LocalExecutor().start(wire.planned, partitions_of(wire, loaded.given), replay, {})
    rows: list = []
    letters: list = []
    bounds = [0, *sorted(min(cut, len(read)) for cut in cuts), len(read)]
    for number, (first, last) in enumerate(pairwise(bounds)):
        table = records_table(wire, loaded.given[first:last])
        done = session.run(table, START + number)
        rows += [(row.key, repr(row.value)) for row, _ in emitted_rows(wire, done.output, 1)]
        letters += written_letters(done.output)
    return rows, letters


@pytest.mark.parametrize("seed", range(36))
def test_numbers_mean_what_their_digits_mean(seed: int, tmp_path: Path) -> None:
    rng = Random(seed)
    given, form, query = drawn(rng), rng.choice(["int", "long"]), QUERIES[seed % len(QUERIES)]
    cuts = [rng.randrange(25) for _ in range(rng.randrange(4))]
    path = tmp_path / "c.yaml"
    found = ran(path, query(form), given, cuts, replay=True)
    assert found == ran(path, query("text"), given, cuts, replay=False)
