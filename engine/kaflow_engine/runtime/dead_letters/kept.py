"""Where the dead letters of a pipeline are kept, and what there is."""

from dataclasses import dataclass
from hashlib import sha256

from kaflow_engine.connectors.kafka.clusters.input_topics import cluster_of
from kaflow_engine.connectors.kafka.dead_letters.letters import read_letters
from kaflow_engine.connectors.kafka.dead_letters.redrive import letters_id
from kaflow_engine.connectors.letters import Letter
from kaflow_engine.connectors.local.letters import local_letters
from kaflow_engine.connectors.postgres.letters import letters_in
from kaflow_engine.errors import SourceUnfit
from kaflow_engine.flow.sinks import ConnectorSink
from kaflow_engine.model.config import Config
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.inputs.kafka_topics import (
    dead_letter_topic,
    home_cluster,
    letters_apart,
)
from kaflow_engine.runtime.sink.bookkeeping import local_folder


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptLetters:
    """All dead letters of a pipeline, oldest first, whether or not they were tried again."""

    letters: tuple[Letter, ...]
    id: str
    """What tells the place where they are from others that were, or will be, called so."""


def kept_letters(spec: PipelineSpec, config: Config) -> KeptLetters:
    """Return the dead letters of a pipeline.

    Raises:
        SourceError: Their topic or table cannot be read.
        StateError: Their files cannot be read.
    """
    topic, apart = dead_letter_topic(spec), letters_apart(spec)
    if isinstance(apart, ConnectorSink):
        settings = dict(apart.settings)
        name, table = str(settings["connection"]), str(settings["table"])
        known = config.postgres.connections.get(name)
        if known is None:
            raise SourceUnfit(
                f"connection '{name}' of the dead letters is not in the configuration",
                spec.place("dead_letters", "connection"),
                "add it under postgres.connections",
            )
        found = letters_in(table, known.settings, spec.name)
        return KeptLetters(letters=tuple(found), id=f"{apart.kind}:{name}.{table}")
    if apart == "files" or topic is None:
        folder = local_folder(config, spec.id)
        mark = sha256(str(folder).encode()).hexdigest()[:8]
        return KeptLetters(letters=tuple(local_letters(folder)), id=f"files:{mark}")
    kafka = cluster_of(config.kafka, home_cluster(spec))
    known_as = letters_id(kafka, topic)
    return KeptLetters(letters=tuple(read_letters(kafka, topic, spec.name, ())), id=known_as)
