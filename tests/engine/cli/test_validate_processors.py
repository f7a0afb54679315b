"""A hundred processors are checked within five seconds of one core, without a JVM."""

import resource
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

STATS = """
INSERT INTO `stats.{n}`
SELECT STREAM itemId, COUNT(*) AS dailyPurchases, AVG(price / quantity) AS average_per_unit
FROM purchases WINDOW BY TUMBLE 1d GROUP BY itemId;
"""
MERCHANTS = """
WITH countriesStream AS (SELECT STREAM * FROM countries);
WITH merchantsWithCountryInfo AS (
  SELECT STREAM m._key AS l_key, CONCAT(surname, ', ', name) AS fullname, address.country, platform
  FROM merchants AS m JOIN countriesStream AS c ON m.address.country = c._key WITHIN {n}m
);
WITH merchantsCorrectKey AS (
  SELECT STREAM l_key AS _key, fullname, country, platform FROM merchantsWithCountryInfo
);
INSERT INTO `currentMerchants.{n}` SELECT STREAM * FROM merchantsCorrectKey;
INSERT INTO `merchantsPerPlatform.{n}`
SELECT TABLE COUNT(*) AS merchants FROM merchantsCorrectKey GROUP BY platform;
"""
ENRICHED = """
WITH people AS (SELECT TABLE name FROM customers);
INSERT INTO `enriched.{n}` SELECT STREAM o.id, COALESCE(people.name, 'no one') AS name
FROM orders AS o LEFT JOIN people ON o.customer = people._key WHERE o.amount > {n};
"""
READINGS = """
INSERT INTO `readings.{n}`
SELECT STREAM meter_id, reading FROM batched LATERAL readings AS reading WHERE reading > {n};
"""
TOPICS = {
    STATS: "purchases: {columns: {itemId: VARCHAR, price: DOUBLE, quantity: INTEGER}}",
    MERCHANTS: "countries: {columns: {language: VARCHAR}}\n  merchants: {columns: {name: VARCHAR, "
    "surname: VARCHAR, address: STRUCT(country VARCHAR), platform: VARCHAR}}",
    ENRICHED: "customers: {columns: {name: VARCHAR}}\n  orders: {columns: {id: INTEGER, "
    "customer: VARCHAR, amount: DOUBLE}}",
    READINGS: 'batched: {columns: {meter_id: INTEGER, readings: "INTEGER[]"}}',
}
SECONDS = 5


def test_a_hundred_processors(tmp_path: Path) -> None:
    for n in range(1, 101):
        sql = [*TOPICS][n % len(TOPICS)]
        tmp_path.joinpath(f"p{n}.processor.sql").write_text(sql.replace("{n}", str(n)))
        about = f"name: p{n}\ntopics:\n  {TOPICS[sql]}\n"
        tmp_path.joinpath(f"p{n}.processor.yaml").write_text(about)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = "from kaflow_engine.cli.main import kaflow; kaflow()"
    done = subprocess.run(
        [sys.executable, "-c", command, "validate", str(tmp_path)],
        env={"PATH": "", "PYTHONPATH": str(Path(__file__).parents[3] / "engine")},
        capture_output=True,
        text=True,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    assert "100 pipelines, 0 mistakes" in done.stdout
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert used < SECONDS
