"""Every error the engine raises on purpose.

KaflowError
├── ModelError          the author's files are wrong
│   ├── UnknownName     a name that does not exist; suggests the nearest one
│   ├── SqlError        SQL that cannot be parsed, bound, or run on a stream
│   └── Problems        several mistakes, reported at once
└── RunError            the files are fine, running them failed
    ├── SourceError     reading a topic or the schema registry
    ├── SinkError       writing a topic, or another system
    │   ├── SinkAway    it may heal
    │   ├── SinkUnfit   someone must act
    │   └── TakenOver   another run of the pipeline has begun
    ├── LimitReached    a budget the author set is used up
    ├── RetriableError  something outside fails now: it may heal
    ├── UserError       someone must act
    ├── StateError      state that is damaged or does not fit the plan
    │   ├── StateHeld   another process has it
    │   └── NotSettled  its stream is not done yet with what a backfill would fill
    └── DrainIncomplete a stop that did not finish in time
"""

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import ClassVar, Literal

from kaflow_engine.masking import masked, without_secrets

Outage = Literal["retry", "stop", "bad settings"]
"""`retry`: the system is away, and may come back; `stop`: trying again gives the same error;
`bad settings`: someone must correct the configuration."""

NOT_NOW = 16
"""Exit code of what is refused now and may be tried again as it is."""


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A place in a file that the author wrote."""

    file: str
    line: int | None = None
    column: int = 0
    """Counted from 1; 0: not known."""
    rewritten_by: str = ""
    """The preprocessors that made the text of the file what it was read as; lines are those of
    that text."""

    def __str__(self) -> str:
        line = "" if self.line is None else f":{self.line}"
        column = f":{self.column}" if line and self.column else ""
        by = f" (rewritten by {self.rewritten_by})" if self.rewritten_by else ""
        return f"{self.file}{line}{column}{by}"


class KaflowError(Exception):
    """What went wrong, where, and what to do about it; secrets that are known are masked."""

    exit_code: ClassVar[int] = 1
    outage: ClassVar[Outage | None] = None
    """What it calls for where an outside system is the cause."""
    causes: tuple[str, ...] = ()
    """What it came of, layer by layer: of one that ended a run, or came from a task."""

    def __init__(self, message: str, at: Location | None = None, hint: str | None = None) -> None:
        self.message = without_secrets(message)
        super().__init__(self.message)
        self.at = at
        self.hint = without_secrets(hint) if hint else hint

    def __str__(self) -> str:
        place = f"{self.at}: " if self.at else ""
        cure = f"\n  hint: {self.hint}" if self.hint else ""
        return f"{place}{self.message}{cure}"


class ModelError(KaflowError):
    """The author's file is wrong."""

    exit_code = 10


class UnknownName(ModelError):
    """A name that does not exist."""

    nearest: str | None = None
    """The known name that it resembles."""

    def __init__(
        self, kind: str, name: str, known: Iterable[str], at: Location | None = None
    ) -> None:
        names = sorted(set(known))
        self.nearest = next(iter(get_close_matches(name, names, n=1, cutoff=0.5)), None)
        super().__init__(f"unknown {kind} '{name}'", at, _hint(self.nearest, names))


class SqlError(ModelError):
    """SQL that cannot be parsed, bound, or run on a stream."""


class Problems(ModelError):
    """Several mistakes, reported at once."""

    def __init__(self, errors: Sequence[ModelError]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(str(error) for error in errors))


class RunError(KaflowError):
    """The files are fine, running them failed."""


class SourceError(RunError):
    """A topic or the schema registry cannot be read."""

    exit_code = 11


class SourceAway(SourceError):
    """A system that gives records does not answer now: it may heal."""

    outage = "retry"


class LossSuspected(SourceError):
    """Records are missed; the next attempt asks the broker which, and says so or goes on."""


class SourceUnfit(SourceError):
    """A source is not as a pipeline needs it, or has changed behind its back: someone must act."""

    outage = "bad settings"


class SinkError(RunError):
    """A topic cannot be written."""

    exit_code = 12


class SinkAway(SinkError):
    """A system that takes rows does not answer, or cannot take them now: it may heal."""

    outage = "retry"


class SinkUnfit(SinkError):
    """A system that takes rows is not as a pipeline needs it, or the login is: someone must act."""

    outage = "bad settings"


class TakenOver(SinkError):
    """Another run of the pipeline has begun; this one must end."""


class RetriableError(RunError):
    """Something outside fails now, of whatever side: it may heal."""

    outage = "retry"


class UserError(RunError):
    """What an author or an operator said cannot be done: someone must act."""

    outage = "bad settings"


class LimitReached(RunError):
    """A budget that the author set is used up."""

    exit_code = 13


class StateError(RunError):
    """State that is damaged or does not fit the plan."""

    exit_code = 14


class StateHeld(StateError):
    """State that another process holds until it ends."""

    exit_code = NOT_NOW


class NotSettled(StateError):
    """A range of a backfill that the stream may still write rows of."""

    exit_code = NOT_NOW


class DrainIncomplete(RunError):
    """A stop that did not finish before its deadline."""

    exit_code = 15


@contextmanager
def noted(doing: str) -> Generator[None]:
    """Let errors of a block say what was done: `causes_of` has it."""
    try:
        yield
    except Exception as error:
        error.add_note(doing)
        raise


def causes_of(error: BaseException) -> tuple[str, ...]:
    """Return what was done when an error came up, and what it came of: a line each, the innermost
    last; secrets that are known are masked.

    What the message says already is left out, and so is what Spark wraps errors in.
    """
    lines: list[str] = []
    at: BaseException | None = error
    seen: set[int] = set()  # an error may be raised from itself
    while at is not None and id(at) not in seen and not _is_wrapping(at):
        seen.add(id(at))
        text = " ".join(str(at).split())
        said = any(text in line for line in (*lines, " ".join(str(error).split())))
        lines += [] if said else [f"{type(at).__name__}: {text}"]
        lines += reversed(getattr(at, "__notes__", ()))
        lines += at.causes if isinstance(at, KaflowError) else ()
        at = at.__cause__
    shown = (masked("", line) for line in dict.fromkeys(lines))
    return tuple(line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…" for line in shown)


_LONGEST = 300


def _is_wrapping(error: BaseException) -> bool:
    return type(error).__module__.partition(".")[0] in ("py4j", "pyspark")


def _hint(nearest: str | None, known: Sequence[str]) -> str | None:
    if nearest is not None:
        return f"did you mean '{nearest}'?"
    if known and len(known) <= 12:
        return "known: " + ", ".join(known)
    return None
