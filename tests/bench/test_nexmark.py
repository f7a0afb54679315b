"""Nexmark in small: its events, and the result of each query from Kafka to Kafka."""
# pyright: basic

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from bench.nexmark.events import START, events
from bench.nexmark.feed import create_topics, fill
from bench.nexmark.queries import QUERIES
from bench.nexmark.twin import check_result
from bench.options import NEXMARK_QUERIES, read_options
from bench.report.nexmark import NEXMARK_TITLES
from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.errors import RunError
from kaflow_engine.model.config import Config
from kaflow_engine.plan.planner.project import load_checked
from kaflow_engine.runtime.planning.prepare import prepare

COUNT = 24_500
SEED = 7
BATCH = 10_000


def test_events_are_the_same_in_whatever_pieces_they_are_made():
    whole, parts = events(0, 25_000, SEED), [events(0, 9_990, SEED), events(9_990, 25_000, SEED)]
    for kind, share in (("person", 1), ("auction", 3), ("bid", 46)):
        made = getattr(whole, kind)
        assert made.num_rows == 25_000 // 50 * share
        assert pa.concat_tables([getattr(part, kind) for part in parts]).equals(made)
        assert getattr(events(0, 25_000, SEED + 1), kind) != made


def test_ids_that_are_named_are_there_or_soon_will_be():
    made = events(0, 50_000, SEED)
    for ids, named in (
        (made.person["id"], made.bid["bidder"]),
        (made.auction["id"], made.bid["auction"]),
    ):
        assert pc.unique(ids).to_pylist() == list(range(1_000, 1_000 + len(ids)))
        unknown = pc.sum(pc.greater(named, pc.max(ids))).as_py()
        assert unknown < 0.01 * len(named)
    times = sorted(
        at
        for table in (made.person, made.auction, made.bid)
        for at in table["dateTime"].to_pylist()
    )
    assert times == list(range(START, START + 50_000))


def test_each_query_can_be_chosen_and_has_a_title():
    names = [query.name for query in QUERIES]
    assert names == list(NEXMARK_TITLES) == list(NEXMARK_QUERIES)
    assert read_options(["--only", "nexmark"]).only == ("nexmark",)
    assert read_options(["--only", "q5,a"]).only == ("floor", "a", "nexmark")
    assert read_options(["--only", "q5,q3"]).queries == ("q3", "q5")


@pytest.fixture(scope="module")
def ran(broker, spark, tmp_path_factory):
    """All queries, run at once over the same topics."""
    from kaflow_engine.runtime.application import run_pipelines

    folder = tmp_path_factory.mktemp("nexmark")
    prefix = f"{folder.name}_"
    create_topics(broker.settings, prefix)
    fill(broker.settings, prefix, COUNT, SEED)
    for query in QUERIES:
        (folder / f"{query.name}.yaml").write_text(query.pipeline(prefix, f"{prefix}{query.name}"))
        create_topic(broker.settings, f"{prefix}{query.name}", 2)
    config = Config.model_validate(
        {
            "kafka": {"brokers": broker.bootstrap},
            "state": {"rocksdb": {"path": str(folder / "state")}},
            "max_records": BATCH,
        }
    )
    project = load_checked([folder], variables={})
    plans = [planned.plan for planned in prepare(project.pipelines, config)]
    run_pipelines(plans, config, until_caught_up=True, spark=spark)
    return events(0, COUNT, SEED), broker.settings, prefix


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_a_query_gives_what_duckdb_gives_over_all_events(ran, query):
    made, kafka, prefix = ran
    assert check_result(query, made, kafka, f"{prefix}{query.name}") > 0


@pytest.mark.spark
@pytest.mark.kafka
def test_a_wrong_result_is_an_error(ran):
    made, kafka, prefix = ran
    with pytest.raises(RunError, match="q1: 22,540 rows are missing"):
        check_result(QUERIES[1], made, kafka, f"{prefix}q0")
