"""Where the first records of a topic lie, if its author says so."""

import re
from pathlib import Path

from kaflow_engine.errors import ModelError
from kaflow_engine.flow.sources import HistoryParams
from kaflow_engine.formats.contract import format_of
from kaflow_engine.model.config import Config, topic_format
from kaflow_engine.model.specs import PipelineSpec

_WITH_FILES = ("format", "partition", "offset", "timestamp", "key", "value")


def history_params(spec: PipelineSpec, config: Config, topic: str) -> HistoryParams | None:
    """Return where the history of a topic is; None where there is only the topic.

    Raises:
        ModelError: There is no path for what is said about files, or Avro without its bytes.
    """
    said = spec.topic(topic).history
    if said.path is None:
        for key in _WITH_FILES:
            if key in said.model_fields_set:
                raise ModelError(
                    f"history.{key} of '{topic}' is about files, and there is no path to any",
                    spec.place("topics", topic, "history", key),
                    "add path: <folder>",
                )
        return None
    traits = format_of(topic_format(spec, config, topic)).traits
    if said.value is None and not traits.is_json:
        raise ModelError(
            f"the history of '{topic}' must hold its values as they were: the topic is "
            f"{traits.title}",
            spec.place("topics", topic, "history"),
            "add value: <column>, the one with the bytes of each record",
        )
    return HistoryParams(
        path=absolute(said.path),
        format=said.format,
        partition=said.partition,
        offset=said.offset,
        timestamp=said.timestamp,
        key=said.key,
        value=said.value,
    )


def absolute(path: str) -> str:
    """Return a path from the root; an address with a scheme stays as it is.

    >>> absolute("s3a://archive/clicks")
    's3a://archive/clicks'
    """
    return path if re.match(r"[a-z][a-z0-9+.-]*:", path) else str(Path(path).absolute())
