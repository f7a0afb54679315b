"""RA19: rows of lists, from Kafka to Kafka."""

import json

import pytest

from kaflow_engine.testing.cases.cases import CaseResult, run_case
from kaflow_engine.testing.cases.executor import LocalExecutor
from kaflow_engine.testing.cases.report import report_lines
from tests.acceptance.kafka_cases import AROUND, cases_of, config_for, run_cases

(CASE,) = cases_of("unnest.yaml")


def test_the_local_executor_gives_the_rows():
    result = run_case(CASE, LocalExecutor(), around=AROUND)
    assert result.passed, "\n".join(report_lines(result))


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.services
def test_rows_of_a_key_leave_in_the_order_of_the_lists(spark, broker, tmp_path):
    ran = run_cases(spark, [CASE], config_for(broker, tmp_path))[CASE.name]
    result = CaseResult(case=CASE, differences=tuple(ran.differences))
    assert result.passed, "\n".join(report_lines(result))
    rows = [
        json.loads(row["value"])
        for row in sorted(ran.rows.to_pylist(), key=lambda row: row["offset"])
        if row["key"] == b"u1"
    ]
    assert [row["sku"] for row in rows] == ["z", "y", "x", "v"]
