"""Case files are read strictly: every mistake at once, at its line."""

from decimal import Decimal
from pathlib import Path

import pytest

from kaflow_engine.errors import ModelError
from kaflow_engine.testing.cases.cuts import Cuts, cut
from kaflow_engine.testing.cases.files import find_cases, load_cases
from kaflow_engine.testing.cases.specs import Advance, Case, Cut, Letter
from kaflow_engine.testing.cases.values import comparable, json_text, parse_json

MISTAKES = """\
- case: all of them
  pipelne: x
  given:
    - {topic: a, at: yesterday, valu: 1}
    - btch
    - {advance: 2x}
    - {topic: a, at: 1, value: null, raw: x}
    - {topic: a, at: 1}
    - {topic: a, at: 1, value: 1, offset: 5}
    - {topic: a, at: 1, raw_base64: "%%", offset: 5}
    - {topic: a, at: 1, value: 1, partition: x}
  expect:
    - {key: 1, value: null, in_batch: 0}
    - {key: 1}
  expect_error: "("
  expect_dead_letters: [{topic: a}]
  cuts: all
  expect_table:
    - {value: 1}
    - {key: x, value: null}
    - {key: y, value: 1}
    - {key: y, value: 2, in_batch: 1}
    - {key: y, value: 2}
    - 5
- 5
- {case: nothing, pipeline: x}
"""

ERRORS = """\
cases.yaml:1: a case with expect_error emits nothing
  hint: remove expect, expect_dead_letters, expect_table
cases.yaml:2: unknown key 'pipelne'
  hint: did you mean 'pipeline'?
cases.yaml:4: unknown key 'valu'
  hint: did you mean 'value'?
cases.yaml:4: 'yesterday' is not a time
  hint: write it as 2026-01-01T00:00:00Z, or as epoch milliseconds
cases.yaml:5: expected a record, found text
  hint: write a record {topic: …, at: …, value: …}, batch, or advance: 2h
cases.yaml:6: '2x' is not a duration
  hint: write it as 500ms, 90s, 30m, 24h, 7d, 2w or 1h30m; at most 36500d
cases.yaml:7: a record has one value
  hint: give one of value, raw and raw_base64; null is a tombstone
cases.yaml:8: a record needs a value
  hint: give one of value, raw and raw_base64; null is a tombstone
cases.yaml:10: offset 5 of 'a' partition 0 is already taken
  hint: offsets rise in a partition; the next one is 6
cases.yaml:10: raw_base64 is not base64
  hint: use raw: for plain text
cases.yaml:11: 'partition': expected a whole number, found 'x'
cases.yaml:13: 'in_batch' must be greater than 0
cases.yaml:14: 'value' is required
cases.yaml:16: 'offset' is required
cases.yaml:16: 'phase' is required
cases.yaml:17: unknown cuts 'all'
  hint: known: given
cases.yaml:19: 'key' is required
cases.yaml:20: key 'x' has no value
  hint: leave out deleted keys
cases.yaml:22: unknown key 'in_batch'
  hint: known: key, topic, value
cases.yaml:22: key 'y' stands twice in a table
  hint: keep the last
cases.yaml:23: key 'y' stands twice in a table
  hint: keep the last
cases.yaml:24: expected a record, found a number
cases.yaml:25: expected a case, found a number
  hint: - case: what it says
cases.yaml:26: the case expects nothing
  hint: add expect: with the records it emits"""

READ = """\
- case: everything
  pipeline: {name: p}
  topics: {a: {x: BIGINT}}
  start: 2026-01-01T00:00:00
  given:
    - {topic: a, at: 1767225600000, key: 5, value: {x: 1.10, y: on, z: true}}
    - batch
    - {topic: a, at: 2026-01-01T01:00:00+01:00, partition: 1, raw: "", headers: {h: v, n: null}}
    - advance: 1h30m
    - {topic: a, at: 2026-01-01T00:00:00.250Z, offset: 7, raw_base64: AAE=}
    - {topic: a, at: 0, value: null}
  expect: [{topic: b, key: null, in_batch: 2, value: {x: 2}}]
  expect_table: [{topic: b, key: 5, value: {x: 1.10}}, {key: k, value: 1}]
  expect_dead_letters: [{topic: a, offset: 1, phase: decode}]
  expect_counters: {read: 4}
"""


def read(folder: Path, text: str) -> tuple[Case, ...]:
    path = folder / "cases.yaml"
    path.write_text(text)
    return load_cases(path, {})


def test_every_mistake_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError) as raised:
        read(Path(), MISTAKES)
    assert str(raised.value) == ERRORS


def test_everything_that_may_stand_in_a_case(tmp_path: Path) -> None:
    (case,) = read(tmp_path, READ)
    first, end, second, advance, third, fourth = case.items
    assert (end, advance) == (Cut(), Advance(5_400_000))
    assert case.given == (first, second, third, fourth)
    assert [r.timestamp - 1_767_225_600_000 for r in case.given[:3]] == [0, 0, 250]
    assert [(r.partition, r.offset) for r in case.given] == [(0, 0), (1, 0), (0, 7), (0, 8)]
    assert [r.value for r in case.given] == ['{"x":1.10,"y":"on","z":true}', b"", b"\x00\x01", None]
    assert [r.key for r in case.given] == [b"5", None, None, None]
    assert case.given[1].headers == (("h", b"v"), ("n", None))
    assert case.values == ({"x": 2},)
    assert case.table is not None
    assert [(spec.topic, spec.key, value) for spec, value in case.table] == [
        ("b", "5", {"x": Decimal("1.10")}),
        (None, "k", 1),
    ]
    assert case.letters == (Letter(topic="a", partition=None, offset=1, phase="decode"),)
    assert case.spec.start == 1_767_225_600_000


def test_a_file_that_is_no_list(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="expected a list of cases, found a mapping"):
        read(tmp_path, "name: p")


def test_case_files_are_told_from_others(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "c.yaml").write_text("- case: x")
    (tmp_path / "sub" / "c.yml").write_text("# cases\n\n- {pipeline: p, case: x}")
    (tmp_path / "pipeline.yaml").write_text("name: case: x")
    (tmp_path / "list.yaml").write_text("- a\n- b")
    assert find_cases([tmp_path, tmp_path / "sub"]) == (tmp_path / "sub" / "c.yml",)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelError, match="no case file in this folder"):
        find_cases([tmp_path / "empty"])


CUTS = """\
- case: cuts
  pipeline: p
  given:
    - {topic: a, at: 1000, value: 1}
    - {topic: a, at: 500, value: 2}
    - batch
    - {topic: a, at: 3000, value: 3}
    - advance: 1s
    - {topic: a, at: 2000, value: 4}
  expect: []
"""


@pytest.mark.parametrize(
    ("cuts", "batches"),
    [
        ("given", [("12", 1000), ("3", 3000), ("", 4000), ("4", 4000)]),
        ("each", [("1", 1000), ("2", 1000), ("3", 3000), ("", 4000), ("4", 4000)]),
        ("all", [("123", 3000), ("", 4000), ("4", 4000)]),
    ],
)
def test_cuts(tmp_path: Path, cuts: str, batches: list[tuple[str, int]]) -> None:
    (case,) = read(tmp_path, CUTS)
    (found,) = cut(case, Cuts.of(cuts))
    shown = [("".join(str(r.value) for r in b.records), b.batch_time) for b in found.batches]
    assert shown == batches


def test_random_cuts_are_the_same_every_time(tmp_path: Path) -> None:
    (case,) = read(tmp_path, CUTS)
    first, again = (list(cut(case, Cuts.of("random:20"))) for _ in range(2))
    assert first == again
    assert len({each.batches for each in first}) > 1
    assert [each.how for each in first] == [f"random:{n}" for n in range(1, 21)]


def test_a_case_with_cuts_given_is_only_run_so(tmp_path: Path) -> None:
    (case,) = read(tmp_path, CUTS + "  cuts: given\n")
    (only,) = cut(case, Cuts.of("random:9"))
    assert only.how == "given"
    assert only.as_given


def test_cuts_that_do_not_exist() -> None:
    for text in ("some", "random", "random:0", "random:x"):
        with pytest.raises(ModelError, match="unknown cuts"):
            Cuts.of(text)


def test_values_are_compared_as_json() -> None:
    assert comparable({"a": 1, "b": [Decimal("1.10")]}) == comparable(
        parse_json('{"b":[1.1],"a":1.0}')
    )
    assert comparable(1) != comparable(True)
    assert comparable("1") != comparable(1)
    assert comparable({"a": None}) != comparable({})
    assert json_text(parse_json('{"n":12345678901234567890.123,"t":"é"}')) == (
        '{"n":12345678901234567890.123,"t":"é"}'
    )
