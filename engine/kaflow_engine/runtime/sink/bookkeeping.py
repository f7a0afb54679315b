"""Where the runs of a pipeline are noted, and what takes its records: in topics, or in files."""

from pathlib import Path

from kaflow_engine.connectors.kafka.admin import delete_topics, describe
from kaflow_engine.connectors.kafka.clusters.input_topics import cluster_of, clusters_of
from kaflow_engine.connectors.kafka.delivery.cluster_sinks import ClusterSinks
from kaflow_engine.connectors.kafka.delivery.producer import SinkSettings
from kaflow_engine.connectors.kafka.delivery.topic_sink import TopicSink
from kaflow_engine.connectors.kafka.replication import Replication
from kaflow_engine.connectors.kafka.run_log.clusters import ClusterLogs
from kaflow_engine.connectors.kafka.run_log.control import ControlTopic
from kaflow_engine.connectors.kafka.run_log.transactions import control_topic
from kaflow_engine.connectors.local.letters import LocalLetters, letters_folder
from kaflow_engine.connectors.local.run_log import LocalRunLog, run_log_file
from kaflow_engine.connectors.record_sink import RecordSink
from kaflow_engine.connectors.run_log import RunLog, RunStart
from kaflow_engine.errors import StateError
from kaflow_engine.flow.flow import Flow
from kaflow_engine.model.config import Config
from kaflow_engine.model.outputs.cluster_specs import section_of
from kaflow_engine.runtime.planning.plan_codec import plan_of
from kaflow_engine.state.log.batch_log import BatchLog, StateRecord

SINK = "output"
"""Name of the one sink in delivery markers."""


def run_log_of(config: Config, plan: Flow, begun: Flow | None = None) -> RunLog:
    """Return the log of the runs of a plan, with markers in each cluster that it writes to.

    Args:
        config: Where the clusters are.
        plan: What is to run.
        begun: What the open batch was begun with.
    """
    return with_clusters(home_log_of(config, plan), config, plan, begun)


def home_log_of(config: Config, plan: Flow) -> RunLog:
    """Return the log that numbers the runs of a plan, and keeps their batches."""
    if plan.dead_letter_topic is None:
        return LocalRunLog(_root(config), plan.pipeline)
    return _in_topic(config, plan.pipeline, plan.cluster)


def log_at_home(config: Config, plan: Flow, known: RunLog) -> RunLog:
    """Return the log of an earlier plan: the one that is known, if its runs were noted there."""
    found = home_log_of(config, plan)
    if isinstance(found, ControlTopic) and isinstance(known, ControlTopic):
        return known if found.settings == known.settings else found
    return known


def with_clusters(home: RunLog, config: Config, plan: Flow, begun: Flow | None = None) -> RunLog:
    """Return a log of runs with the markers of other clusters, if there are any.

    Raises:
        StateError: The configuration does not have one of them any more.
    """
    of_batch = frozenset[str]() if begun is None else begun.written_clusters
    others = sorted((plan.written_clusters | of_batch) - {plan.cluster})
    logs = {name: _in_topic(config, plan.pipeline, name) for name in others}
    return ClusterLogs(home, logs, of_batch) if logs else home


def run_log_found(config: Config, pipeline_id: str, log: BatchLog) -> RunLog:
    """Return the log of a pipeline of which only the id is known, and its state where it is left;
    of a state that cannot be read, the clusters are asked which of them know the pipeline.

    Raises:
        SourceError: No broker of a cluster answers.
        StateError: The configuration does not have a cluster any more that the state names.
    """
    if run_log_file(_root(config), pipeline_id).exists():
        return LocalRunLog(_root(config), pipeline_id)
    if plans := _plans_left(log):
        return run_log_of(config, *plans)
    clusters, topic = clusters_of(config.kafka), control_topic(pipeline_id)
    asked = clusters if len(clusters) > 1 else {}
    there = [name for name, kafka in asked.items() if describe(kafka, [topic])[topic].exists]
    home, *others = there or [""]
    logs = {name: _in_topic(config, pipeline_id, name) for name in others}
    found = _in_topic(config, pipeline_id, home)
    return ClusterLogs(found, logs) if logs else found


def _plans_left(log: BatchLog) -> list[Flow]:
    """Return the plan of a state, and that of its open batch; nothing where one cannot be read."""
    try:
        state, begun = log.load_state(), open_plan(log)
        if state is None:
            return []
        plan = plan_of(log.load_plan(state.fingerprint))
    except StateError:
        return []
    return [plan] if begun is None else [plan, begun]


def records_of_run(
    config: Config, plan: Flow, state: StateRecord, start: RunStart, begun: Flow | None = None
) -> tuple[RecordSink, LocalLetters | None]:
    """Return what takes the records of a run, rows for topics and dead letters, and what takes
    dead letters beside it, where they go into files and rows to topics.

    Args:
        config: Where everything is.
        plan: What is to run.
        state: Whose batches they are.
        start: What is known of deliveries.
        begun: What the open batch was begun with; its dead letters go where that says.
    """
    files = LocalLetters(
        folder=local_folder(config, plan.pipeline),
        state=state.state_id,
        generation=state.generation,
    )
    if plan.dead_letter_topic is None:
        return files, None
    in_files = any(each is not None and each.letters == "files" for each in (plan, begun))
    beside = files if in_files else None

    def topics(cluster: str, known: RunStart) -> TopicSink:
        settings = SinkSettings(
            kafka=cluster_of(config.kafka, cluster),
            pipeline_id=plan.pipeline,
            state_id=state.state_id,
            generation=state.generation,
            sink=SINK,
            epoch=known.epoch,
            epoch_offset=known.epoch_offset,
            exactly_once=plan.delivery == "exactly_once",
            delivered=known.delivered_to(SINK),
        )
        return TopicSink(settings, held=max(known.delivered.values(), default=0))

    home = topics(plan.cluster, start)
    if not start.others and not plan.cluster:
        return home, beside
    others = {cluster: topics(cluster, known) for cluster, known in start.others.items()}
    return ClusterSinks(home=plan.cluster, sinks={plan.cluster: home, **others}), beside


def refuse_moved(log: BatchLog, plan: Flow) -> None:
    """Refuse a plan with which runs are noted elsewhere, while a batch is open.

    Only where it was begun is it known what was delivered of it.

    Raises:
        StateError: The open batch was begun with topics and the plan has none, or the other way.
    """
    begun, before = log.open_batch(), open_plan(log)
    if begun is None or before is None:
        return
    if before.cluster != plan.cluster:
        was, now = (section_of(each.cluster) for each in (before, plan))
        raise StateError(
            f"batch {begun.number} of pipeline '{plan.name}' was begun when {was} knew its runs, "
            f"and it is {now} now",
            hint="run it once more as it was, until it is caught up, then change it",
        )
    if (before.dead_letter_topic is None) != (plan.dead_letter_topic is None):
        had, has = ("topics", "none") if plan.dead_letter_topic is None else ("no topics", "some")
        raise StateError(
            f"batch {begun.number} of pipeline '{plan.name}' was begun when it used {had}, and it "
            f"uses {has} now",
            hint="run it once more as it was, until it is caught up, then change it",
        )


def open_plan(log: BatchLog) -> Flow | None:
    """Return the plan that the open batch was begun with."""
    begun = log.open_batch()
    return None if begun is None else plan_of(log.load_plan(begun.plan))


def local_folder(config: Config, pipeline_id: str) -> Path:
    """Return where the dead letters of a pipeline are that go into files."""
    return letters_folder(_root(config), pipeline_id)


def forget_runs(config: Config, plan: Flow) -> None:
    """Remove the log of the runs of a backfill that is over."""
    if plan.dead_letter_topic is None:
        run_log_file(_root(config), plan.pipeline).unlink(missing_ok=True)
    else:
        for cluster in plan.written_clusters:
            delete_topics(cluster_of(config.kafka, cluster), [control_topic(plan.pipeline)])


def _in_topic(config: Config, pipeline_id: str, cluster: str = "") -> ControlTopic:
    known = config.kafka.every.get(cluster)
    if known is None:
        raise StateError(
            f"pipeline '{pipeline_id}' has written to cluster '{cluster}', which is not in the "
            "configuration any more",
            hint=f"configure it as {section_of(cluster)} again, until the pipeline is caught up",
        )
    kafka, replication = cluster_of(config.kafka, cluster), Replication.of(known)
    return ControlTopic(kafka, pipeline_id, replication=replication)


def _root(config: Config) -> Path:
    return Path(config.state.rocksdb.path).absolute()
