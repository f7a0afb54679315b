"""The queries: a pipeline file of each, and SQL that DuckDB answers over all events at once.

SQL of windows leaves out those that have not ended when the topics have: `complete` is the time up
to which all events are there.
"""

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "queries"
PREFIX = "nexmark_"
"""Of all topics in the files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One query."""

    name: str
    reads: tuple[str, ...] = ("bid",)
    """Kinds of events."""
    updates: bool = False
    """The result is a table: the last row of each key counts, and a null value deletes it."""
    windows: bool = False
    """Rows leave when a window closes, so that what counts is the time of a batch."""
    arrival: bool = False
    """Its time is Kafka's."""

    def pipeline(self, prefix: str, name: str) -> str:
        """Return its pipeline file.

        Args:
            prefix: Of the topics that it reads.
            name: Of the pipeline and of the topic that it writes.
        """
        text = (FOLDER / f"{self.name}.yaml").read_text("utf-8")
        return text.replace(f"{PREFIX}{self.name}", name).replace(PREFIX, prefix)

    @property
    def twin(self) -> str:
        """The SQL over tables `person`, `auction`, `bid` and `side`."""
        return (FOLDER / f"{self.name}.sql").read_text("utf-8")


QUERIES = (
    Query(name="q0"),
    Query(name="q1"),
    Query(name="q2"),
    Query(name="q3", reads=("person", "auction")),
    Query(name="q4", reads=("auction", "bid"), updates=True),
    Query(name="q5", windows=True),
    Query(name="q7", windows=True),
    Query(name="q8", reads=("person", "auction"), windows=True),
    Query(name="q11", windows=True),
    Query(name="q12", windows=True, arrival=True),
    Query(name="q13"),
    Query(name="q14"),
    Query(name="q16", updates=True),
    Query(name="q17", updates=True),
    Query(name="q18", updates=True),
    Query(name="q20", reads=("auction", "bid")),
)
