"""What is known while the nodes of a file are lowered, one behind the other."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kaflow_engine.errors import ModelError
from kaflow_engine.model.sources.database_specs import LARGEST, SMALLEST
from kaflow_engine.model.streamling.lowering.parts import Parts, Placed, said
from kaflow_engine.model.streamling.operations import OPERATION, Rows
from kaflow_engine.model.streamling.sql.rows import Input, quoted
from kaflow_engine.model.streamling.topology import Graph, Node

SETTINGS = "streamling."
"""How those of `vars` begin that the settings of Streamling are read as."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of the process that nodes depend on."""

    most_rows: int = 2000
    """Of a request."""
    concurrency: int = 25
    timeout: int = 300
    """Seconds that an answer is waited for."""
    job_mode: bool = False
    page_size: int | None = None
    """Rows of a page; None: as many as take a moment."""
    sample_every: int = 1
    """Of so many rows one is printed."""
    sink_cluster: str | None = None
    """Where topics are written, if not where they are read."""
    side_outputs: tuple[tuple[str, Mapping[str, str]], ...] = ()
    """What sees the rows of each source: ids of plugins, with their options."""

    @staticmethod
    def of(variables: Mapping[str, object]) -> "Settings":
        """Return those that `vars` of the configuration hold."""

        def number(name: str, most: int) -> int | None:
            text = str(variables.get(SETTINGS + name, ""))
            return min(int(text), most) if text.isdecimal() else None

        pages = number("clickhouse_source.page_size", LARGEST + 1)
        default = Settings()
        return Settings(
            most_rows=number("external_http_handler.trigger_max_count", 10_000)
            or default.most_rows,
            concurrency=number("external_http_handler.buffer_size", 256) or default.concurrency,
            timeout=number("external_http_handler.operator_timeout_sec", 86_400) or default.timeout,
            job_mode=str(variables.get(f"{SETTINGS}job_mode", "")).lower() == "true",
            sink_cluster=str(variables.get(f"{SETTINGS}kafka_sink.cluster", "")) or None,
            sample_every=number("print_sink.sample_every", 2**31) or default.sample_every,
            side_outputs=tuple(_side_outputs(variables)),
            page_size=None if pages is None or pages > LARGEST else max(SMALLEST, pages),
        )


def _side_outputs(variables: Mapping[str, object]) -> Iterator[tuple[str, Mapping[str, str]]]:
    for name in str(variables.get(f"{SETTINGS}plugin.side_output_ids", "")).split(","):
        if name := name.strip():
            start = f"{SETTINGS}plugin.side_output_options.{name}."
            options = {k[len(start) :]: str(v) for k, v in variables.items() if k.startswith(start)}
            yield name, options


@dataclass(slots=True, kw_only=True)
class Lowering:
    """A file that is being lowered."""

    graph: Graph
    rows: Mapping[str, Rows]
    settings: Settings
    parts: Parts
    called: dict[str, str] = field(default_factory=dict[str, str])
    """What nodes are called in the pipeline."""
    read: dict[str, str] = field(default_factory=dict[str, str])
    """The topics and sources that nodes are."""
    last: dict[tuple[str, tuple[str, ...]], str] = field(
        default_factory=dict[tuple[str, tuple[str, ...]], str]
    )
    """The relations with the last row of each key of a node."""

    def refuse(self, node: Node, key: str, message: str, hint: str) -> None:
        """Remember what cannot be done."""
        self.parts.mistakes.append(ModelError(message, node.place(key), hint))

    def relation(self, node: Node, name: str, values: Mapping[str, object]) -> None:
        """Add a relation for a node."""
        self.parts.relations[name] = said(node.place(), values)

    def inputs(self, node: Node, *, rows_stay: bool) -> dict[str, Input]:
        """Return what a query may read, by the names that the file gives.

        Args:
            node: Whose query it is.
            rows_stay: Otherwise it groups rows, and those with `_gs_op` are read as what is there.
        """
        found: dict[str, Input] = {}
        for name in node.reads:
            if name not in self.called:
                continue
            rows = self.rows[name]
            relation = self.called[name]
            if not rows_stay and rows.kind == "rows" and rows.key:
                relation = self.last_rows(node, name, rows.key)
                rows = Rows(kind="table", key=rows.key)
            found[name] = Input(relation=relation, rows=rows)
        return found

    def last_rows(self, reader: Node, name: str, key: tuple[str, ...]) -> str:
        """Return the relation with the rows of a node that are there: the last one of each key,
        unless it deletes."""
        if (name, key) not in self.last:
            by, left = self.parts.free(f"{name} by {', '.join(key)}"), f"{name} that are there"
            self.relation(reader, by, {"from": self.called[name], "as": "table", "key": list(key)})
            left = self.parts.free(left)
            query = f"SELECT * EXCLUDE ({OPERATION}) FROM {quoted(by)} WHERE {OPERATION} <> 'd'"
            self.relation(reader, left, {"query": query})
            self.last[name, key] = left
        return self.last[name, key]


def key_of(node: Node, rows: Rows) -> tuple[str, ...]:
    """Return the key by which a node writes."""
    return node.spec.primary_key or rows.key


def placed(node: Node, key: str, value: object) -> Placed:
    """Return a value where the file says it under a key of a node."""
    return Placed(value, node.place(key))
