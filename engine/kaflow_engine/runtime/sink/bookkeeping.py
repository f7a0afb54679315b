"""Where the runs of a pipeline are noted, and what takes its records: in topics, or in files."""

from pathlib import Path

from kaflow_engine.connectors.kafka.admin import delete_topics
from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.connectors.kafka.delivery.producer import SinkSettings
from kaflow_engine.connectors.kafka.delivery.topic_sink import TopicSink
from kaflow_engine.connectors.kafka.replication import Replication
from kaflow_engine.connectors.kafka.run_log.control import ControlTopic
from kaflow_engine.connectors.kafka.run_log.transactions import control_topic
from kaflow_engine.connectors.local.letters import LocalLetters, letters_folder
from kaflow_engine.connectors.local.run_log import LocalRunLog, run_log_file
from kaflow_engine.connectors.record_sink import RecordSink
from kaflow_engine.connectors.run_log import RunLog, RunStart
from kaflow_engine.errors import StateError
from kaflow_engine.flow.flow import Flow
from kaflow_engine.model.config import Config
from kaflow_engine.runtime.planning.plan_codec import plan_of
from kaflow_engine.state.log.batch_log import BatchLog, StateRecord

SINK = "output"
"""Name of the one sink in delivery markers."""


def run_log_of(config: Config, plan: Flow) -> RunLog:
    """Return the log of the runs of a plan."""
    if plan.dead_letter_topic is None:
        return LocalRunLog(_root(config), plan.pipeline)
    return _in_topic(config, plan.pipeline)


def run_log_found(config: Config, pipeline_id: str) -> RunLog:
    """Return the log of a pipeline of which only the id is known."""
    if run_log_file(_root(config), pipeline_id).exists():
        return LocalRunLog(_root(config), pipeline_id)
    return _in_topic(config, pipeline_id)


def records_of_run(config: Config, plan: Flow, state: StateRecord, start: RunStart) -> RecordSink:
    """Return what takes the records of a run: rows for topics, and dead letters."""
    if plan.dead_letter_topic is None:
        return LocalLetters(
            folder=local_folder(config, plan.pipeline),
            state=state.state_id,
            generation=state.generation,
        )
    topics = SinkSettings(
        kafka=KafkaSettings.configured(config.kafka),
        pipeline_id=plan.pipeline,
        state_id=state.state_id,
        generation=state.generation,
        sink=SINK,
        epoch=start.epoch,
        epoch_offset=start.epoch_offset,
        exactly_once=plan.delivery == "exactly_once",
        delivered=start.delivered_to(SINK),
    )
    return TopicSink(topics, held=max(start.delivered.values(), default=0))


def refuse_moved(log: BatchLog, plan: Flow) -> None:
    """Refuse a plan with which runs are noted elsewhere, while a batch is open.

    Only where it was begun is it known what was delivered of it.

    Raises:
        StateError: The open batch was begun with topics and the plan has none, or the other way.
    """
    begun = log.open_batch()
    if begun is None:
        return
    before = plan_of(log.load_plan(begun.plan))
    if (before.dead_letter_topic is None) != (plan.dead_letter_topic is None):
        had, has = ("topics", "none") if plan.dead_letter_topic is None else ("no topics", "some")
        raise StateError(
            f"batch {begun.number} of pipeline '{plan.name}' was begun when it used {had}, and it "
            f"uses {has} now",
            hint="run it once more as it was, until it is caught up, then change it",
        )


def local_folder(config: Config, pipeline_id: str) -> Path:
    """Return where the dead letters are of a pipeline that uses no broker."""
    return letters_folder(_root(config), pipeline_id)


def forget_runs(config: Config, plan: Flow) -> None:
    """Remove the log of the runs of a backfill that is over."""
    if plan.dead_letter_topic is None:
        run_log_file(_root(config), plan.pipeline).unlink(missing_ok=True)
    else:
        kafka = KafkaSettings.configured(config.kafka)
        delete_topics(kafka, [control_topic(plan.pipeline)])


def _in_topic(config: Config, pipeline_id: str) -> ControlTopic:
    kafka = KafkaSettings.configured(config.kafka)
    return ControlTopic(kafka, pipeline_id, replication=Replication.of(config.kafka))


def _root(config: Config) -> Path:
    return Path(config.state.rocksdb.path).absolute()
