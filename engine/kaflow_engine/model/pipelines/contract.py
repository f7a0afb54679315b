"""What a front end must offer: it knows its own files, and says which pipelines they describe."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.model.files.tree import Entries
from kaflow_engine.model.files.yaml_file import Document
from kaflow_engine.model.pipelines.loader import Reading
from kaflow_engine.model.sources.topic_specs import TopicSchemaSpec
from kaflow_engine.model.specs import PipelineSpec

FunctionKindOf = Callable[[str], Literal["function", "aggregate"] | None]
"""Tells what a name, in whatever case, is among the Python functions of the project; None: none."""


def no_function(name: str) -> None:
    """Know of no function."""


Role = Literal["pipeline", "about"]
"""What a file is to a front end: it holds a pipeline, or only says something about others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A file of a project."""

    path: Path
    standing: Literal["named", "found", "near"]
    """`named`: its author asked for this file; `found`: it is in a folder that was asked for;
    `near`: no one asked for it, and others may refer to it."""
    document: Document | None = None
    """Of a YAML file that can be read."""
    mistake: ModelError | None = None
    """Why it cannot be read."""

    @property
    def wanted(self) -> bool:
        """Whether its mistakes matter."""
        return self.standing != "near"


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedTopics:
    """What the configuration says of topics, for front ends that ask it."""

    specs: Mapping[str, TopicSchemaSpec]
    tree: Entries
    """The same under `topics`, each key with its place."""


NO_TOPICS = SharedTopics(specs={}, tree=Entries(at=Location(""), entries=()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What files of a front end may refer to."""

    pipelines: Sequence[PipelineSpec]
    """Those of front ends that stand before it in the table."""
    variables: Mapping[str, object]
    """`vars` of the configuration."""
    environment: Mapping[str, str]
    """Environment variables that the configuration allows."""
    function_kind: FunctionKindOf = no_function
    topics: SharedTopics = NO_TOPICS


@dataclass(frozen=True, slots=True, kw_only=True)
class Lowered:
    """What the files of a front end say as pipelines."""

    readings: tuple[Reading, ...] = ()
    """Of files that were asked for."""
    around: tuple[Reading, ...] = ()
    """Of the others."""
    mistakes: tuple[ModelError, ...] = field(default=())
    """What is wrong between files."""


class FrontEnd(Protocol):
    """One way to write pipelines."""

    @property
    def name(self) -> str:
        """Its name in messages."""
        ...

    @property
    def endings(self) -> tuple[str, ...]:
        """How names of files end that may be its own; a longer ending goes before a shorter one."""
        ...

    @property
    def example(self) -> str:
        """What a file may be called that holds a pipeline, for hints."""
        ...

    @property
    def variables(self) -> tuple[str, ...]:
        """Patterns of names of environment variables that its files may use, beside those that
        all files may."""
        ...

    def claims(self, text: str) -> bool:
        """Tell whether the text of a file is its own though it is no YAML yet; no other front end
        is asked about such a file, and it is not parsed."""
        ...

    def role(self, file: SourceFile) -> Role | None:
        """Return what a file with one of its endings is to it; None: the file is not its own."""
        ...

    def lower(self, files: Sequence[SourceFile], around: Surroundings) -> Lowered:
        """Return the pipelines of all its files; mistakes are collected, never raised."""
        ...
