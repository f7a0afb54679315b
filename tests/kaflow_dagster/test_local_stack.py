"""`make run`: streams run in Dagster, their tables fill, and nothing stays behind.

`KAFLOW_KILLS=all` fills a year by the page, too; `test_tables.py` fills one by a run.
"""
# pyright: basic

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import dagster as dg
import pytest

from definitions.daily_revenue import daily_revenue
from kaflow_dagster.development.instance import REPOSITORY, Instance
from kaflow_engine.connectors.delta.table import partition_rows
from kaflow_engine.testing.services.processes import commands_of
from tests.acceptance.kills import ALL
from tests.kaflow_dagster.page import Page

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.services]

ROOT = Path(__file__).parents[2]
PATIENCE_S = 900
TABLE = ("tables", "orders_by_day")
WINDOWS = ("tables", "revenue_by_minute")
WRITTEN = {
    *("streams/orders_by_day", "streams/user_enrichment", "tables/orders_by_day"),
    *("kafka/enriched_events", "kafka/user_enrichment.dead_letters"),
    *("streams/revenue_by_minute", "tables/revenue_by_minute"),
    *("streams/spending", "kafka/payments", "kafka/spending"),
}
FAILING = "expect_column_values_to_be_between_amount"
CHECKS = """
{assetNodes{assetChecksOrError{... on AssetChecks{checks{
  name executionForLatestMaterialization{status}}}}}}
"""
SCHEDULES = """
query($repository: RepositorySelector!){schedulesOrError(repositorySelector: $repository){
  ... on Schedules{results{name scheduleState{id status}}}}}
"""
SCHEDULE_OFF = "mutation($id: String!){stopRunningSchedule(id: $id){__typename}}"
FILLED = "backfill"
ENDED = ("SUCCEEDED", "FAILED")
NEWEST = """
query($key: AssetKeyInput!, $day: String!){assetNodeOrError(assetKey: $key){... on AssetNode{
  assetMaterializations(partitions: [$day], limit: 1){
    metadataEntries{label ... on TextMetadataEntry{text}}}}}}
"""


def recipe():
    """What `make run` runs, without the program."""
    text = ROOT.joinpath("Makefile").read_text().replace("\\\n", "")
    (line,) = re.findall(r"^run:.*\n\t@exec \$\(BIN\)/python (.*) \$\(ARGS\)$", text, re.MULTILINE)
    return shlex.split(line)


def test_make_run(tmp_path, monkeypatch):
    paths = os.pathsep.join([str(ROOT), str(ROOT / "engine")])
    log = tmp_path / "log"
    with log.open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, *recipe(), "--port", "0"],
            cwd=ROOT,
            env={
                **os.environ,
                "PYTHONPATH": paths,
                "TMPDIR": str(tmp_path),
                "KAFLOW__BATCH_INTERVAL": "30s",  # other tests share the machine
            },
            stdout=said,
            stderr=said,
        )
    try:
        until(process, log, lambda: "all streams run" in log.read_text())
        instance = Instance(int(re.findall(r"http://127\.0\.0\.1:(\d+)", log.read_text())[0]))
        checks_by_hand(instance)
        (home,) = tmp_path.glob("kaflow-local-stack-*")
        table, windows = (home / "warehouse" / path[1] for path in (TABLE, WINDOWS))
        until(process, log, lambda: sum(partition_rows(table).values()) > 100)
        until(process, log, lambda: instance.materialized() >= WRITTEN)
        assert set(instance.groups()) == {"example", "reports"}
        for each in (TABLE, WINDOWS):  # the stream has closed it
            until(process, log, lambda each=each: instance.partitions(each) == 1)
        yesterday, _ = sorted(partition_rows(table))
        streamed = partition_rows(table)[yesterday]
        assert 0 < partition_rows(windows)[yesterday] < streamed
        instance.launch("checks__orders_by_day")
        until(process, log, lambda: checked(instance))
        with Page(instance.address) as page:
            look(page, yesterday)
            if ALL:
                fill_all(page, TABLE)
                until(process, log, lambda: instance.partitions(TABLE) > 365)
                until(process, log, lambda: mode_of(instance, TABLE, yesterday) == FILLED)
                assert partition_rows(table)[yesterday] == streamed
                page.open(f"/assets/tables/orders_by_day?view=partitions&partition={yesterday}")
                page.sees(r"Materialized \(3\d\d\)", "kaflow/mode", "backfill", name="partitions")
        assert orders_of(yesterday, home / "warehouse", monkeypatch) == streamed
        warnings = re.findall(r"\w+Warning: .*", (home / "dagster.log").read_text())
        assert not [words for words in warnings if "ResourceWarning" not in words]
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 0, log.read_text()
    finally:
        if process.poll() is None:  # a test that failed leaves nothing behind either
            process.send_signal(signal.SIGINT)
            process.wait(180)
    assert "Traceback" not in log.read_text()
    assert not list(tmp_path.glob("kaflow-*"))
    assert not commands_of(str(tmp_path))


def checks_by_hand(instance):
    """Switch off what checks every five minutes: the more often, the slower the machine is."""
    found = instance.ask(SCHEDULES, repository=REPOSITORY)["schedulesOrError"]["results"]
    switches = {each["name"]: each["scheduleState"] for each in found}
    assert {state["status"] for state in switches.values()} == {"RUNNING"}
    for name, state in switches.items():
        if name.startswith("check_regularly__"):
            done = instance.ask(SCHEDULE_OFF, id=state["id"])["stopRunningSchedule"]
            assert done["__typename"] == "ScheduleStateResult"


def checked(instance):
    nodes = instance.ask(CHECKS)["assetNodes"]
    found = [each for node in nodes for each in node["assetChecksOrError"].get("checks", ())]
    states = {each["name"]: each["executionForLatestMaterialization"] for each in found}
    amount = [states[name] for name in states if name.endswith("_amount")]
    return len(amount) == 2 and all(each and each["status"] in ENDED for each in amount)


def mode_of(instance, table, day):
    """Return what filled a partition last."""
    node = instance.ask(NEWEST, key={"path": table}, day=day)["assetNodeOrError"]
    (newest,) = node["assetMaterializations"]
    (mode,) = [e["text"] for e in newest["metadataEntries"] if e["label"] == "kaflow/mode"]
    return mode


def look(page, yesterday):
    """See what a person is told to look at."""
    page.open("/assets")
    page.sees("enriched_events", "orders_by_day", "shop.orders", name="catalog")
    page.open("/asset-groups")
    page.sees("example", "reports", name="groups")
    page.open("/assets/streams/user_enrichment?view=lineage")
    page.sees("user_events", "user_profiles", "enriched_events", name="lineage")
    page.open("/assets/streams/orders_by_day?view=overview")
    page.sees("kaflow/lag", "kaflow/records_per_second", "kaflow/watermark")
    page.click("Plots")
    page.sees_plots(5, name="stream")
    page.open("/assets/streams/orders_by_day?view=checks&checkDetail=no_dead_letters")
    page.sees("Failed", "kaflow/new", "kaflow/total", name="dead_letters")
    page.open("/assets/kafka/enriched_events?view=overview")
    page.sees("kaflow/rows_per_second", "kaflow/offsets_written", "kaflow/newest", name="topic")
    page.open("/assets/tables/orders_by_day?view=overview")
    page.sees("amount", r"DECIMAL\(12,2\)", "sales@example.com", name="table")
    page.open(f"/assets/tables/orders_by_day?view=partitions&partition={yesterday}")
    page.sees(r"Materialized \(1\)", "kaflow/mode", "stream")
    page.open(f"/assets/tables/orders_by_day?view=checks&checkDetail={FAILING}")
    page.sees("Failed", "kaflow/failed_percent", r"\tc\d+\t14\d\d\.\d\d\t", name="checks")
    page.open("/automation")
    page.sees("supervise__example", "check_regularly__orders_by_day", name="automation")
    page.open("/locations/kaflow/sensors/supervise__example")
    page.sees("ok: run .* streams", over="0 runs requested", name="reason")


def fill_all(page, table):
    """Fill every partition with the mouse."""
    page.open(f"/assets/{'/'.join(table)}?view=partitions")
    page.click("Materialize…")
    page.click("Show all partitions")
    page.click("All")
    page.sees("Backfills all partitions in a single run", name="backfill")
    page.launch("Launch backfill")


def orders_of(day, warehouse, monkeypatch):
    """Return what the asset downstream of the table finds."""
    monkeypatch.setenv("KAFLOW__WAREHOUSE", str(warehouse))
    done = dg.materialize([daily_revenue], partition_key=day)
    (event,) = done.get_asset_materialization_events()
    found = event.materialization.metadata
    assert found["revenue"].value > 0
    return found["orders"].value


def until(process, log, holds):
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < end, log.read_text()
        time.sleep(3)  # each look costs the pages of Dagster some work
