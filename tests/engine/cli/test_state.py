"""What `kaflow state` says of states that a run has left."""

import json
import shutil
from dataclasses import replace

import duckdb
import pytest
from click.testing import CliRunner

from kaflow_engine.cli.main import kaflow
from kaflow_engine.flow.flow import Backfill
from kaflow_engine.runtime.planning.plan_codec import fingerprint, plan_text
from kaflow_engine.state.storage.lease import hold_lease
from tests.engine.runtime.state_here import START, StateHere, record_table, state_plan

pytestmark = pytest.mark.slow

SMART = {"type": "smart", "require": ["tier"], "on_expiry": "emit"}
PLAN = state_plan("payments", "users", emission=SMART, name="shop", partitions=2)
MINUTE = 60_000


def record(topic, offset, minutes, key, partition=0, **value):
    text = json.dumps(value).encode() if value else None
    return topic, partition, offset, START + minutes * MINUTE, key.encode(), text


BATCHES = (
    [
        record("users", 0, 0, "u1", id="u1", tier="gold"),
        record("payments", 0, 1, "7", n=7, amount="12.50"),
        record("payments", 1, 1, "8", n=8, amount="0.10"),
    ],
    [
        record("users", 1, 2, "u1", id="u1", tier="silver"),
        record("events", 0, 3, "u2", id="u2", n=7),
    ],
    [record("users", 2, 4, "u3", id="u3", tier="gold"), record("users", 3, 4, "u1")],
    [
        record("events", 1, 24, "u2", id="u2", n=9),
        record("payments", 2, 24, "9", n=9, amount="1"),
        # which let the watermark pass what came before
        record("events", 0, 24, "x", 1, id="x", n=0),
        record("payments", 0, 24, "0", 1, n=99, amount="2"),
    ],
)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    found = tmp_path_factory.mktemp("states")
    here = StateHere(found, PLAN)
    for number, rows in enumerate(BATCHES):
        here.run(record_table(rows), START + 30 * MINUTE + number, snapshot=number == 1)
    bare = replace(state_plan(partitions=2), pipeline="p-1", name="bare")
    StateHere(found, bare)
    (found / "no-state").mkdir()
    return found


@pytest.fixture
def own(root, tmp_path):
    """The states, to be spoilt."""
    shutil.copytree(root, tmp_path / "own")
    return tmp_path / "own"


def call(root, *arguments, code=0):
    command = ["state", *map(str, arguments), "--set", f"state.rocksdb.path={root}"]
    done = CliRunner().invoke(kaflow, command)
    assert done.exit_code == code, done.output
    return done


def data(root, *arguments, code=0):
    return json.loads(call(root, *arguments, "--json", code=code).stdout)


def test_states_are_listed_by_pipeline(root):
    bare, shop = data(root, "ls")
    assert (bare["pipeline"], bare["id"], bare["batch"], bare["batch_time"]) == (
        "bare",
        "p-1",
        0,
        None,
    )
    assert shop["batch_time"] == "2023-11-14T22:43:20.003Z"
    assert shop["bytes"] > 10_000
    chosen = ("state_id", "generation", "partitions", "batch", "open_batch", "running", "plan")
    assert [shop[name] for name in chosen] == ["s1", 1, 2, 4, None, None, fingerprint(PLAN)]
    listed = call(root, "ls")
    assert listed.stdout.splitlines()[2].split()[:5] == ["shop", "s1", "1", "2", "4"]
    assert listed.stderr.splitlines()[-1] == f"2 states in {root}"


def test_a_folder_without_states_lists_none(tmp_path):
    assert call(tmp_path / "none", "ls").stderr == f"0 states in {tmp_path / 'none'}\n"


def test_ls_says_what_is_wrong_and_who_runs(own):
    (own / "p-1" / "state.json").write_text("{")
    StateHere(own, PLAN).begin(record_table([]), START)
    with hold_lease(own / "shop"):
        lines = call(own, "ls").stdout.splitlines()
    assert lines[1].endswith("damaged: 'state.json' is damaged")
    assert "running: process" in lines[2]
    assert call(own, "ls").stdout.endswith("stopped, batch 5 is open\n")


LATER = "2023-11-14T22:57:20.000Z"
ROWS = {
    "payments": [
        ("7", {"y.amount": 12.5}, "2023-11-14T22:34:20.000Z", True),
        ("8", {"y.amount": 0.1}, "2023-11-14T22:34:20.000Z", True),
        ("9", {"y.amount": 1.0}, LATER, False),
        ("99", {"y.amount": 2.0}, LATER, False),
    ],
    "users": [("u3", {"u.tier": "gold"}, None, False)],
    "waiting": [
        ("u2", {"e.id": "u2", "e.n": 7, "y.amount": 12.5}, "2023-11-14T22:36:20.000Z", True),
        ("u2", {"e.id": "u2", "e.n": 9, "y.amount": 1.0}, LATER, False),
        ("x", {"e.id": "x", "e.n": 0, "y.amount": None}, LATER, False),
    ],
}


def seen(rows, side):
    found = [
        (row["key"], row["values"], row["expires"], row["expired"])
        for row in rows
        if row["side"] == side
    ]
    return sorted(found, key=repr)


def test_show_decodes_all_that_is_kept(root):
    found = data(root, "show", "shop")
    for side, rows in ROWS.items():
        assert seen(found, side) == rows, side
    assert {row["side"] for row in found} == {*ROWS, "kept", "accounts"}
    assert all(row["age_seconds"] > 0 for row in found)
    kept = next(row for row in found if row["side"] == "kept" and row["key"] == "9")
    assert (kept["record"], kept["step"], kept["operator"]) == ("events[0]@1", 1, "join payments")
    (account, *_) = [row for row in found if row["record"] == "events[0]@0" and row["step"] == 3]
    assert account["values"] == {"outcome": "waiting", "waits": 1}


def test_show_finds_a_key_and_a_side_and_an_earlier_batch(root):
    found = data(root, "show", "shop", "--key", "u2")
    assert seen(found, "waiting") == ROWS["waiting"][:2]
    assert len(found) == 2
    earlier = data(root, "show", "shop", "--side", "u", "--at", 2)
    assert seen(earlier, "users") == [("u1", {"u.tier": "silver"}, None, False)]
    due = data(root, "show", "shop", "--operator", 2, "--side", "due")
    assert [row["values"] for row in due] == [{"entry": "waiting"}] * 3
    shown = call(root, "show", "shop", "--limit", 1, "--operator", 2)
    assert shown.stderr.splitlines()[-1] == "1 rows of shop"
    head, row = shown.stdout.splitlines()
    assert head.split() == "operator side key record event time age expires values".split()
    assert "u.tier=gold" in row


def test_rows_keep_their_types_in_files(root, tmp_path):
    for form, name in (("parquet", "a.parquet"), ("duckdb", "a.duckdb")):
        call(root, "show", "shop", "--format", form, tmp_path / name)
    with duckdb.connect(str(tmp_path / "a.duckdb"), read_only=True) as con:
        parquet = f"'{tmp_path / 'a.parquet'}'"
        types = dict(
            con.execute("SELECT column_name, column_type FROM (DESCRIBE state)").fetchall()
        )
        assert types["y.amount"] == "DECIMAL(9,2)"
        assert types["expires"] == "TIMESTAMP WITH TIME ZONE"
        counts = [con.execute(f"SELECT count(*) FROM {t}").fetchone() for t in ("state", parquet)]
        assert counts == [(14,), (14,)]
        chosen = """SELECT "e.n", "y.amount"::VARCHAR, epoch_ms(expires) FROM {}
            WHERE side = 'waiting' AND expired"""
        for table in ("state", parquet):
            (row,) = con.execute(chosen.format(table)).fetchall()
            assert row == (7, "12.50", START + 23 * MINUTE)
    again = call(root, "show", "shop", "--format", "duckdb", tmp_path / "a.duckdb", code=2)
    assert "exists; name a file that does not" in again.stderr


def test_size_counts_by_side_and_partition(root):
    found = {(row["step"], row["side"]): row for row in data(root, "size", "shop")}
    assert found[1, "payments"]["entries"] == 4
    assert found[2, "due"]["entries"] == 3
    parts = found[1, "payments"]["partitions"]
    assert sum(part["entries"] for part in parts) == 4
    assert sum(part["bytes"] for part in parts) == found[1, "payments"]["bytes"] > 100
    shown = call(root, "size", "shop")
    assert shown.stdout.splitlines()[1].split()[:4] == ["join", "payments", "payments", "4"]
    assert "entries, " in shown.stderr


def test_diff_says_what_was_added_removed_and_changed(root):
    found = data(root, "diff", "shop@1", "shop@2")
    assert (found["added"], found["removed"], found["changed"]) == (3, 0, 1)
    (changed,) = [row for row in found["differences"] if row["change"] == "changed"]
    assert (changed["key"], changed["before"], changed["after"]) == (
        "u1",
        {"u.tier": "gold"},
        {"u.tier": "silver"},
    )
    back = call(root, "diff", "shop@3", root / "shop", "--limit", "2")
    assert back.stderr.splitlines()[-1] == "8 added, 0 removed, 0 changed; 6 are not shown"
    gone = call(root, "diff", "shop@2", "shop@3").stdout
    assert [line.split()[0] for line in gone.splitlines()] == ["operator", "+", "-"]
    assert data(root, "diff", "shop", "shop")["differences"] == []


REFUSED = [
    (["show", "shp"], 10, "unknown state 'shp'\n  hint: did you mean 'shop'?"),
    (["show", "shop", "--side", "paymets"], 10, "did you mean 'payments'?"),
    (["show", "shop", "--operator", "4"], 14, "known: 1 (join payments), 2 (join users)"),
    (["show", "shop", "--at", "9"], 14, "batch 9 is not done yet: the last one is 4"),
    (["show", "shop", "--format", "parquet"], 2, "--format parquet needs a FILE"),
    (["show", "shop", "rows.json"], 2, "needs --format parquet or duckdb"),
    (["diff", "shop@x", "shop"], 2, "'shop@x' has no number of a batch behind the @"),
    (["snapshot", "bare"], 14, "no batch is done yet"),
    (["rescale", "shop", "--partitions", "0"], 2, "0 is not in the range 1<=x<=256"),
]


@pytest.mark.parametrize(("arguments", "code", "said"), REFUSED)
def test_what_cannot_be_done_is_reported(root, arguments, code, said):
    assert said in call(root, *arguments, code=code).stderr


def test_no_state_at_all_is_reported(tmp_path):
    for command in (["show", "x"], ["size", "x"], ["verify", "x"], ["snapshot", "x"]):
        assert f"there is no state in '{tmp_path}'" in call(tmp_path, *command, code=14).stderr


@pytest.mark.parametrize("command", [["rescale", "--partitions", "3"], ["snapshot"], ["drop"]])
def test_a_pipeline_that_runs_is_left_alone(own, command):
    before = data(own, "show", "shop", "--side", "waiting")
    name, *more = command
    with hold_lease(own / "shop"):
        refusal = call(own, name, "shop", *more, code=16).stderr
        shown = data(own, "show", "shop", "--side", "waiting")
        assert data(own, "verify", "shop")["sound"]
    assert "pipeline 'shop' runs (process " in refusal
    assert "stop it first" in refusal
    assert seen(shown, "waiting") == seen(before, "waiting")


def test_a_snapshot_is_taken_at_once(own):
    assert call(own, "snapshot", "shop").stdout == "shop: snapshot behind batch 4\n"
    assert (own / "shop/snapshots/4/manifest.json").is_file()
    assert "batch 1 is no longer there" in call(own, "show", "shop", "--at", 1, code=14).stderr


def test_a_batch_that_is_open_must_be_run_before_a_rescale(own):
    here = StateHere(own, PLAN)
    here.begin(record_table([record("users", 4, 5, "u9", id="u9", tier="x")]), START)
    shown = call(own, "rescale", "shop", "--partitions", 3, code=14).stderr
    assert "batch 5 of pipeline 'shop' was begun and is not done" in shown
    assert "run the pipeline once, `kaflow run … --until-caught-up`" in shown


def test_the_state_of_a_backfill_is_not_rescaled(tmp_path):
    plan = replace(PLAN, pipeline="shop.backfill-1-2", backfill=Backfill(start=1, end=2))
    here = StateHere(tmp_path, plan)
    assert here.state.fingerprint == fingerprint(plan)
    assert plan_text(plan) == here.log.load_plan(fingerprint(plan))
    shown = call(tmp_path, "rescale", "shop.backfill-1-2", "--partitions", 3, code=14).stderr
    assert "'shop.backfill-1-2' is the state of a backfill" in shown
