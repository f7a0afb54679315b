"""The headers of dead letters, and of records that are put through their pipeline again."""

ABOUT = (
    "pipeline",
    "topic",
    "partition",
    "offset",
    "timestamp",
    "phase",
    "error",
    "message",
    "attempt",
)
"""What a dead letter says of its record, each as the header `kaflow.<name>` behind its own ones."""

PREFIX = "kaflow."

COLUMNS = ("letter", *ABOUT, "key", "value", "redriven", "backfill", "chain")
"""What a condition may name; `letter` is partition:offset of the dead letter itself."""

BACKFILL = "kaflow.backfill"
"""Header of rows and dead letters that a backfill wrote: its range of event time."""

REDRIVE = "kaflow.redrive"
"""Header of a redriven record: `<attempt>:<pipeline id>`; other pipelines do not see the record."""

CHAIN = "kaflow.chain"
"""Header of dead letters about one of several chains of a pipeline, and of their records when they
are redriven: the first output of the chain, and which branch of it. Other chains do not see the
record. Of one that lacks an event time by which only some of the pipeline read its topic, `@` and
what the watermark calls that time; what reads the topic by another one does not see the record."""


FROM = "kaflow.from"
"""Header of the records of a source that is no topic: where each is, such as the path of a file."""

UNREADABLE = "kaflow.unreadable"
"""Header of a record without a value that stands for what cannot be read, and why."""


def redrive_mark(attempt: int, pipeline: str) -> bytes:
    """Return the value of the header of a record that is tried once more.

    >>> redrive_mark(2, "enrich")
    b'2:enrich'
    """
    return f"{attempt}:{pipeline}".encode()


def read_mark(value: bytes) -> tuple[int, str]:
    """Return attempt and pipeline of what `redrive_mark` wrote; (1, "") of anything else.

    >>> read_mark(b"2:enrich"), read_mark(b"nonsense")
    ((2, 'enrich'), (1, ''))
    """
    number, _, pipeline = value.decode(errors="replace").partition(":")
    return (int(number), pipeline) if number.isdecimal() and pipeline else (1, "")
