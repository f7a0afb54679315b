"""What a stream reports of its parts."""

import dagster as dg

from kaflow_dagster.streams.reports import nodes, report
from kaflow_engine.api.status import Progress
from tests.engine.telemetry.examples import FULL


def test_the_table_of_parts_says_which_is_the_slowest() -> None:
    assert [*nodes(FULL)][1:3] == [
        {
            "part": "queries",
            "rows in": None,
            "rows out": None,
            "worked s": 2.5,
            "share of work": "31%, the slowest",
            "without rows s": 13.0,
            "held up s": 2.0,
        },
        {
            "part": "transform scored",
            "rows in": 90,
            "rows out": 87,
            "worked s": 1.5,
            "share of work": "19%",
            "without rows s": 13.0,
            "held up s": 2.0,
        },
    ]


def test_it_is_there_once_a_batch_is_over() -> None:
    assert "kaflow/nodes" not in report(Progress(pipeline="p"))
    table = report(FULL)["kaflow/nodes"]
    assert isinstance(table, dg.TableMetadataValue)
    assert [record.data["part"] for record in table.records] == [
        "source events",
        "queries",
        "transform scored",
        "state",
        "sink out",
    ]
