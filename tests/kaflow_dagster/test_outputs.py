"""What a stream has written becomes materializations: not too many, and with nothing secret."""

# pyright: basic

import asyncio
from dataclasses import dataclass, field
from threading import Event

import dagster as dg
import pytest
from dagster._core.loader import LoadingContextForTest

from kaflow_dagster.runs.background import Errand
from kaflow_dagster.streams.outputs import Output, OutputReports, Running, cell, table_of
from kaflow_engine import masking
from kaflow_engine.runtime.newest_rows import NewestRows
from kaflow_engine.telemetry.progress import Progress

KEY = dg.AssetKey(["kafka", "out"])
LETTERS = dg.AssetKey(["kafka", "p.dead_letters"])
CHECK = dg.AssetCheckKey(KEY, "few")
OUTPUTS = (
    Output(kind="rows", target="out", key=KEY, checks=("few",)),
    Output(kind="letters", target="letters", key=LETTERS),
)


NOTHING = NewestRows(rows=())


@dataclass
class World:
    """A session whose clock goes a minute from report to report, and whose outputs are given."""

    instance: dg.DagsterInstance
    rows: int = 10
    found: NewestRows | Exception = NOTHING
    now: float = 0.0
    takes: float = 0.0
    asked: list = field(default_factory=list)

    def __post_init__(self):
        self.reports = OutputReports(self.instance, "run", self.rows, self.read, lambda: self.now)

    def read(self, output, running, limit):
        self.asked.append((output.kind, limit))
        self.now += self.takes
        if isinstance(self.found, Exception):
            raise self.found
        return self.found

    def report(self, delivered=0, outputs=OUTPUTS, **changes):
        self.now += 60
        read = {"lag": {"in": 3}, "offsets": {"in": {0: 5}}}
        written = delivered if isinstance(delivered, dict) else {"out": delivered}
        progress = Progress(pipeline="p", batch=7, written=written, **read, **changes)
        self.reports.report(outputs, progress, Running(None, None))

    def events(self, key=KEY):
        """Metadata of materializations, oldest first."""
        records = self.instance.fetch_materializations(key, limit=100).records[::-1]
        assert {record.run_id for record in records} <= {""}
        found = [record.asset_materialization.metadata for record in records]
        return [{name: plain(value) for name, value in each.items()} for each in found]


def plain(value):
    return value.records if isinstance(value, dg.TableMetadataValue) else value.value


@pytest.fixture
def world():
    with dg.DagsterInstance.ephemeral() as instance:
        yield World(instance)


def test_one_for_each_report_in_which_something_was_written(world):
    for rows, letters in [(0, 0), (0, 0), (30, 0), (30, 0), (90, 2), (90, 2)]:
        world.report(delivered=rows, letters=letters)
    rates = [(e["kaflow/rows"], e["kaflow/rows_per_second"]) for e in world.events()]
    assert rates == [(0, 0.0), (30, 0.25), (60, 0.5)]
    assert [e["kaflow/rows"] for e in world.events(LETTERS)] == [0, 2]


def test_each_output_is_reported_with_its_own_rows_when_something_was_written_to_it(world):
    other = dg.AssetKey(["tables", "kept"])
    both = (*OUTPUTS, Output(kind="rows", target="kept", key=other))
    for out, kept in [(0, 0), (30, 0), (30, 5), (90, 5)]:
        world.report({"out": out, "kept": kept}, both)
    assert [e["kaflow/rows"] for e in world.events()] == [0, 30, 60]
    assert [e["kaflow/rows"] for e in world.events(other)] == [0, 5]


def test_a_run_that_counts_from_nothing_again_is_heard(world):
    for rows in (50, 20, 20):
        world.report(delivered=rows)
    assert [e["kaflow/rows"] for e in world.events()] == [50, 20]


def test_what_it_says(world):
    world.found = NewestRows(rows=({"_offset": 8, "id": "a"},), offsets={0: 9, 1: 4})
    world.report(delivered=1)
    (said,) = world.events()
    rows = said.pop("kaflow/newest")
    assert [row.data for row in rows] == [{"_offset": 8, "id": "a"}]
    assert world.asked == [("rows", 10), ("letters", 10)]
    assert said == {
        "kaflow/mode": "stream",
        "kaflow/rows": 1,
        "kaflow/rows_per_second": 0.02,
        "kaflow/batch": 7,
        "kaflow/lag": 3,
        "kaflow/offsets_read": {"in": {"0": 5}},
        "kaflow/offsets_written": {"0": 9, "1": 4},
        "kaflow/run": "run",
    }


def test_of_many_partitions_the_sum_is_said(world):
    world.found = NewestRows(rows=(), offsets=dict.fromkeys(range(100), 5))
    world.report()
    assert world.events()[0]["kaflow/offsets_written"] == {"sum of 100 partitions": 500}


def test_rows_that_cannot_be_read_are_only_missing(world):
    world.found = OSError("away")
    world.report(delivered=1)
    (said,) = world.events()
    assert said["kaflow/rows"] == 1
    assert not {"kaflow/newest", "kaflow/offsets_written"} & set(said)


def test_after_a_slow_failure_the_others_are_not_tried_in_that_report(world):
    world.found, world.takes = OSError("away"), 3.0
    for rows in (1, 2):
        world.report(delivered=rows, letters=rows)
    assert world.asked == [("rows", 10)] * 2
    world.takes = 0.1
    world.report(delivered=3, letters=3)
    assert world.asked[2:] == [("rows", 10), ("letters", 10)]


def test_no_rows_are_read_where_no_one_wants_them(world):
    world.reports = OutputReports(world.instance, "run", 0, world.read)
    world.report(delivered=1)
    assert (world.asked, len(world.events())) == ([], 1)


def test_what_a_check_found_stays_while_the_stream_goes_on(world):
    @dg.asset_check(asset=KEY, name="few")
    def few():
        return dg.AssetCheckResult(passed=False, metadata={"n": 1})

    job = dg.define_asset_job("look", selection=dg.AssetSelection.checks(CHECK))
    defs = dg.Definitions(assets=[dg.AssetSpec(KEY)], asset_checks=[few], jobs=[job])
    storage, instance = world.instance.event_log_storage, world.instance
    for round_ in (1, 2):
        defs.resolve_job_def("look").execute_in_process(instance=instance)
        for more in range(3):
            world.report(delivered=10 * round_ + more)
            latest = storage.get_latest_asset_check_execution_by_key([CHECK])[CHECK]
            context = LoadingContextForTest(instance)
            assert asyncio.run(latest.targets_latest_materialization(context))
            assert (latest.evaluation.passed, latest.evaluation.metadata["n"].value) == (False, 1)
    assert len(storage.get_asset_check_execution_history(CHECK, limit=20)) == 4  # one copy of each


def test_a_check_that_still_runs_has_found_nothing_yet(world):
    @dg.asset_check(asset=KEY, name="few")
    def few():
        world.report(delivered=1)
        return dg.AssetCheckResult(passed=True)

    job = dg.define_asset_job("look", selection=dg.AssetSelection.checks(CHECK))
    defs = dg.Definitions(assets=[dg.AssetSpec(KEY)], asset_checks=[few], jobs=[job])
    assert defs.resolve_job_def("look").execute_in_process(instance=world.instance).success
    assert len(world.events()) == 1


def test_cells_are_short_and_hold_no_secret():
    secret = "s3cr3t-of-the-environment!"
    masking.remember([secret])
    long = f"{'x' * 110}{secret}"
    shown = cell(long)
    assert len(cell("y" * 5_000)) == 120
    assert secret[:4] not in shown
    assert cell({"url": f"http://u:{secret}@host"}) == '{"url": "http://***@host"}'
    assert cell(float("nan")) == "nan"
    assert cell(2**60) == str(2**60)


def test_a_wide_table_is_cut():
    table = table_of([{f"c{n}": n for n in range(100)}, {"c0": "text", "more": None}])
    assert [column.name for column in table.schema.columns] == [f"c{n}" for n in range(24)]
    assert [column.type for column in table.schema.columns][:2] == ["string", "int"]
    assert table.records[1].data["c1"] is None


def test_an_errand_that_hangs_holds_up_no_one():
    errand, free = Errand(), Event()
    assert errand.result(lambda: free.wait(60), 0.01) is None
    assert errand.result(lambda: 1, 60) is None  # the first one still runs
    free.set()
    errand._thread.join(60)
    assert errand.result(lambda: 2, 60) == 2
