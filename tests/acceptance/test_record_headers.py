"""Headers that queries set, and keys of outputs that name none, from Kafka to Kafka."""
# pyright: basic

import pytest

from kaflow_engine.testing.cases.cases import CaseResult
from kaflow_engine.testing.cases.report import report_lines
from tests.acceptance.kafka_cases import cases_of, config_for, run_cases

CASES = cases_of("record_headers.yaml")


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.services
def test_records_have_the_headers_of_the_query_and_the_keys_that_came(spark, broker, tmp_path):
    ran = run_cases(spark, CASES, config_for(broker, tmp_path))
    for case in CASES:
        result = CaseResult(case=case, differences=tuple(ran[case.name].differences))
        assert result.passed, "\n".join(report_lines(result))
    keys = ran[CASES[0].name].rows["key"].to_pylist()
    assert sorted(keys, key=str) == [None, (258).to_bytes(8, "big")]
