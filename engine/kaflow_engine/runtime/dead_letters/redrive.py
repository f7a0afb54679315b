"""Puts dead letters through their pipeline again: into the topics or journals they came from."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kaflow_engine.connectors.journal.folder import journal_folder
from kaflow_engine.connectors.journal.journal import KEY_HEADER
from kaflow_engine.connectors.journal.redriven import Again, noted, put_again
from kaflow_engine.connectors.kafka.clusters.input_topics import InputTopics, cluster_of
from kaflow_engine.connectors.kafka.dead_letters.redrive import (
    Place,
    can_redrive,
    note_key,
    redriven_headers,
    redriven_notes,
    redriven_topic,
    send_again,
)
from kaflow_engine.connectors.kafka.topic_schemas import input_topics
from kaflow_engine.connectors.letters import Letter, chosen
from kaflow_engine.errors import StateError
from kaflow_engine.flow.origins.hybrid import HybridParams
from kaflow_engine.flow.sources import JournalParams
from kaflow_engine.model.config import Config
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.inputs.kafka_topics import dead_letter_topic, kafka_topics
from kaflow_engine.plan.planner.inputs.sources import source_params
from kaflow_engine.runtime.dead_letters.kept import KeptLetters, kept_letters


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """Where the records of a pipeline's dead letters can be put again."""

    pipeline_id: str
    inputs: InputTopics
    topics: dict[str, tuple[str, int]]
    """What queries call a topic → what `inputs` does, and the partition that stands for its
    first."""
    journals: dict[str, Path]
    """By source."""
    notes: str
    """The topic that says, in each cluster, which were sent there again."""

    def place(self, letter: Letter) -> Place | None:
        """Return the partition of a topic that a record came from; None: it did not."""
        if letter.topic not in self.topics or not can_redrive(letter):
            return None
        name, first = self.topics[letter.topic]
        if letter.partition < first:
            return None  # a row of a table or file, in front of the topic
        there = self.inputs.place(name)
        return Place(cluster=there.cluster, topic=there.topic, partition=letter.partition - first)

    def into(self, cluster: str, letters: Sequence[Letter]) -> list[tuple[Letter, Place]]:
        """Return the letters whose records came from topics of a cluster, and where from."""
        places = ((letter, self.place(letter)) for letter in letters)
        return [(each, at) for each, at in places if at is not None and at.cluster == cluster]

    def journal(self, letter: Letter) -> Path | None:
        """Return the journal that a record came from; None: it did not."""
        return self.journals.get(letter.topic) if can_redrive(letter) else None

    def leads(self, letter: Letter) -> bool:
        """Tell whether the record of a letter can be put again."""
        return self.place(letter) is not None or self.journal(letter) is not None

    @property
    def clusters(self) -> list[str]:
        """Those that have topics which records come from."""
        return sorted({self.inputs.place(name).cluster for name, _ in self.topics.values()})


def find_letters(spec: PipelineSpec, config: Config) -> list[Letter]:
    """Return the dead letters of a pipeline, with what became of them since.

    Raises:
        SourceError: They, or what was noted of them, cannot be read.
        StateError: Another redrive does not end.
    """
    return _with_notes(kept_letters(spec, config), ways_of(spec, config), config)


def redrivable(spec: PipelineSpec, config: Config, letters: Sequence[Letter]) -> list[Letter]:
    """Return those of dead letters that can be tried again: not twice, and none whose record came
    from where nothing can be put."""
    ways = ways_of(spec, config)
    return [letter for letter in letters if ways.leads(letter)]


def redrive(
    spec: PipelineSpec,
    config: Config,
    where: str | None,
    on_progress: Callable[[int, int], None] = lambda done, of: None,
) -> list[Letter]:
    """Put the records of dead letters where they came from again, each once.

    Args:
        spec: Of their pipeline.
        config: Where everything is.
        where: SQL over the columns of letters; None: all.
        on_progress: Hears how many of how many were sent, of each cluster.

    Returns:
        The letters whose records were put again.

    Raises:
        ModelError: The condition cannot be read.
        SourceError: Dead letters cannot be read.
        SinkError: A broker refuses, or another redrive of the pipeline has begun.
        StateError: Notes cannot be kept, or another redrive does not end.
    """
    ways, sent = ways_of(spec, config), list[Letter]()

    def found() -> tuple[KeptLetters, list[Letter]]:
        kept = kept_letters(spec, config)
        return kept, chosen(_with_notes(kept, ways, config), where)

    kept, letters = found()
    for cluster in ways.clusters:

        def wanted(cluster: str = cluster) -> list[tuple[Letter, Place]]:
            return ways.into(cluster, found()[1])

        if ways.into(cluster, letters):
            kafka = cluster_of(config.kafka, cluster)
            sent += send_again(kafka, ways.notes, kept.id, spec.id, wanted, on_progress)
    return [*sent, *_into_journals(spec.id, ways, kept.id, letters)]


def ways_of(spec: PipelineSpec, config: Config) -> Ways:
    """Return where records of a pipeline can be put again."""
    inputs, root = input_topics(spec, config), Path(config.state.rocksdb.path).absolute()
    topics = {name: (name, 0) for name in kafka_topics(spec)}
    journals: dict[str, Path] = {}
    for name in spec.sources:
        match source_params(spec, name):
            case HybridParams(topic=str(topic)) as params:
                topics[name] = name, 1
                inputs = inputs.with_place(name, params.cluster, topic)
            case params if isinstance(params, JournalParams):
                journals[name] = journal_folder(root, spec.id, name)
            case _:
                pass
    return Ways(
        pipeline_id=spec.id,
        inputs=inputs,
        topics=topics,
        journals=journals,
        notes=redriven_topic(dead_letter_topic(spec) or f"{spec.name}.dead_letters"),
    )


def _with_notes(kept: KeptLetters, ways: Ways, config: Config) -> list[Letter]:
    again = {
        note
        for cluster in ways.clusters
        for note in redriven_notes(cluster_of(config.kafka, cluster), ways.notes, kept.id)
    }
    mark = f"@{kept.id}"
    for folder in ways.journals.values():
        again |= {note.removesuffix(mark) for note in noted(folder) if note.endswith(mark)}
    return [replace(each, redriven=each.letter in again) for each in kept.letters]


def _into_journals(
    pipeline_id: str, ways: Ways, known_as: str, letters: Sequence[Letter]
) -> list[Letter]:
    """Leave records for the journals they came from; what was left before is taken once."""
    by_journal: dict[Path, list[Letter]] = {}
    for letter in letters:
        folder = ways.journal(letter)
        if folder is not None:
            by_journal.setdefault(folder, []).append(letter)
    for folder, some in by_journal.items():
        if not folder.is_dir():
            raise StateError(
                f"the journal of source '{some[0].topic}' is not on this machine: there is no "
                f"folder '{folder}'",
                hint="redrive where the pipeline runs, with its configuration",
            )
        records = [_again(letter, pipeline_id, known_as) for letter in some]
        put_again(folder, records, round(time.time() * 1000))
    return [letter for some in by_journal.values() for letter in some]


def _again(letter: Letter, pipeline_id: str, known_as: str) -> Again:
    own = replace(letter, headers=tuple(h for h in letter.headers if h[0] != KEY_HEADER))
    headers = [
        (name, value if isinstance(value, bytes) else (value or "").encode())
        for name, value in redriven_headers(own, pipeline_id)
    ]
    note = note_key(letter.letter, known_as)
    return Again(note=note, value=letter.value, headers=tuple(headers))
