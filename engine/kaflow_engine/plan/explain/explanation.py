"""An explanation as data: all that `kaflow explain` says, before it is drawn."""

from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

from kaflow_engine.model.columns import Column
from kaflow_engine.model.names import topic_target
from kaflow_engine.plan.explain.group_part import GroupPart
from kaflow_engine.plan.explain.topic_part import TopicPart


@dataclass(frozen=True, slots=True, kw_only=True)
class SidePart:
    """One joined side."""

    alias: str
    topic: str
    kind: str
    role: str
    on: tuple[str, ...]
    filter: tuple[str, ...]
    within: tuple[int, int] | None = None
    """Milliseconds that an event may be before and after its driving record; None: by TTLs."""
    before: bool = False
    """A record sees it without what it changes itself."""
    several: bool = False
    """Of what is looked up all rows with the join key match."""
    asks: str | None = None
    """The dynamic table that it is."""
    events: bool = False
    """Its rows, or records, are events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPart:
    """Joins over one key."""

    key: tuple[str, ...]
    sides: tuple[SidePart, ...]
    inner: tuple[str, ...]
    """Sides that must match before a row leaves."""
    require: tuple[str, ...]
    """What must not be NULL before a row leaves; empty where columns are not known yet."""
    unmatched: tuple[str, ...] = ()
    """Events without which a row leaves when its time is up, and not before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineagePart:
    """Where an output column comes from."""

    column: str
    sources: tuple[tuple[str, str], ...]
    """(topic, column), sorted; those that conditions read are not among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePart:
    """The table that rows go into."""

    name: str
    path: str
    partition: str
    """`day` or `hour`, of event time."""
    interval: int
    """Milliseconds that rows are gathered."""
    start: date | None
    """The first partition that a backfill may fill; None: no one says."""
    schedule: str | None
    """When Dagster fills the newest partition that is over, as cron writes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkPart:
    """The sink that rows go to, where the file names its kind."""

    kind: str
    target: str
    """What the output is called."""
    settings: tuple[tuple[str, str], ...]
    """What the author says of it, and what follows."""
    shared: bool
    """Others may read what it holds, under the name of the output."""
    changes: bool | None
    """Rows are replaced and deleted; None: not known yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxPart:
    """Lines about one thing."""

    title: str
    rows: tuple[tuple[str, str], ...]
    """What a line is about, and what it says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionPart:
    """A Python function that queries call."""

    name: str
    signature: str
    """The types that it takes and returns; `?` stands behind those that may be NULL."""
    version: int
    module: str
    """Where it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainPart:
    """What happens to the records of one topic until they are finished rows."""

    name: str
    """As dead letters name it."""
    topics: tuple[str, ...]
    """Those that it reads, the driving one first; empty where the query is not known yet."""
    driving: str | None
    """The alias of the driving topic; None: the query cannot be read without columns."""
    filters: tuple[str, ...]
    """WHERE of all that it feeds over the driving side alone: before anything waits."""
    steps: tuple[StepPart, ...]
    where: tuple[str, ...]
    """The rest of WHERE of all that it feeds, over the finished row."""
    require: tuple[str, ...]
    """Columns that must not be NULL under smart emission."""
    wait: int | None
    """Milliseconds that a row waits at most, or meets events that come later; None: what has no
    match goes nowhere."""
    emission: str
    """When its rows leave."""
    on_expiry: str
    """What becomes of an incomplete row, under smart emission."""
    of_rows: bool = False
    """Its rows are those of groups or transforms, to which others are joined."""
    delay: int = 0
    """Milliseconds that the watermark of its joins is behind that of its topics."""
    latest: bool = False
    """Its rows have the greatest time of their events."""
    tables: tuple[BoxPart, ...] = ()
    """What makes its rows, where these are of tables; empty where columns are not known yet."""
    ledger: bool | None
    """Rows of one record part before they are settled, so that what became of them is noted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchPart:
    """One SELECT of an output: the only one, or one of a union."""

    chain: int
    """Place of the chain whose rows it takes."""
    unnests: tuple[str, ...]
    """Lists that become rows of the finished row, and what an element is called; those that stand
    side by side in one text."""
    where: tuple[str, ...]
    """WHERE over the finished row, where others of the chain have another one, or over elements."""
    lineage: tuple[LineagePart, ...]
    """One for each column; empty where the query is not known yet."""
    groups: tuple[GroupPart, ...] = ()
    """One behind the other."""

    @property
    def gathered(self) -> tuple[GroupPart, ...]:
        """Its groups, save for what only transforms rows."""
        return tuple(group for group in self.groups if group.transform is None)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputPart:
    """What is written to one topic or table."""

    topic: str | None
    """None: rows go into a table, or to a sink that the file names."""
    cluster: str | None = None
    """Where the topic is; None: where topics are that name none."""
    table: TablePart | None
    sink: SinkPart | None = None
    format: str
    """`delta` of a table; of another sink its kind."""
    key: str | None
    key_format: str | None = None
    """None: text."""
    branches: tuple[BranchPart, ...]
    """Several where it writes a union; their rows leave in this order."""
    looked_up: tuple[BranchPart, ...]
    """Queries whose groups they look up, and tables whose rows they find by other columns than the
    key."""
    looking_up: tuple[BranchPart, ...] = ()
    """Queries whose rows, behind their groups or transforms, look up what is joined to them."""
    gathered: tuple[BranchPart, ...] = ()
    """Branches of unions whose rows the groups of others take; their last group is that one."""
    columns: tuple[Column, ...] | None
    """None: not known yet."""
    avro_schema: str | None
    guarantee: str
    """What the sink gives, and for whom."""
    last_exchange: bool | None
    """Rows travel once more, to the writer of their key."""
    every: int | None = None
    """Milliseconds for which a key that sent a change holds the next one back."""
    headers: str | None = None
    """Of records, as SQL of the first branch; None: a query sets none."""
    side_outputs: tuple[str, ...] = ()
    """What sees rows before they leave: plugins with their options."""

    @property
    def target(self) -> str:
        """What the output is called."""
        if self.sink is not None:
            return self.sink.target
        if self.table is not None:
            return self.table.name
        return topic_target(self.topic or "", self.cluster or "")

    @property
    def lineage(self) -> tuple[LineagePart, ...]:
        """Where each column comes from, in whatever branch; columns are called as in the first."""
        columns = zip(*(branch.lineage for branch in self.branches), strict=True)
        return tuple(
            LineagePart(
                column=parts[0].column,
                sources=tuple(sorted({source for part in parts for source in part.sources})),
            )
            for parts in columns
        )

    def data(self) -> dict[str, Any]:
        """Return plain data for JSON; what a query does stands in the output where it has one."""
        found = asdict(self)
        branches = found.pop("branches")
        for name in ("looked_up", "looking_up", "gathered", "side_outputs", "cluster"):
            if not found[name]:
                del found[name]
        if self.sink is None:
            del found["sink"]
        for name in ("every", "headers"):
            if found[name] is None:
                del found[name]
        if len(branches) == 1:
            own = {name: branches[0][name] for name in ("unnests", "where", "groups", "lineage")}
            return {**found, **own}
        return {**found, "branches": branches, "lineage": [asdict(part) for part in self.lineage]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A pipeline in parts, in the order in which a record passes them."""

    name: str
    id: str
    at: str
    description: str | None
    topics: tuple[TopicPart, ...]
    chains: tuple[ChainPart, ...]
    """In the order in which the file names them; one where the query is not known yet."""
    emission: str
    on_dimension_update: str
    outputs: tuple[OutputPart, ...]
    """In the order of the file."""
    delivery: str
    """As the author asks for it."""
    ordered: bool
    dead_letters: str | None
    """Their topic; None: they have none."""
    letters_apart: str | None = None
    """Where dead letters go that have no topic; None: files beside the state."""
    max_rate: float | None
    max_count: int | None
    partitions: int | None
    """None: chosen from the machine."""
    notices: tuple[str, ...]
    functions: tuple[FunctionPart, ...] = ()
    """Of the project, that queries call, by name; none where the queries are not known yet."""

    def topics_of(self, output: OutputPart) -> tuple[str, ...]:
        """Return the topics of which the rows of an output are made."""
        read = (*output.branches, *output.looked_up, *output.looking_up, *output.gathered)
        chains = (self.chains[branch.chain] for branch in read)
        return tuple(dict.fromkeys(topic for chain in chains for topic in chain.topics))

    def data(self) -> dict[str, Any]:
        """Return plain data for JSON; the parts of the only chain stand beside the others."""
        found = asdict(self)
        chains = found.pop("chains")
        if not self.functions:
            del found["functions"]
        for topic in found["topics"]:
            if topic["source"] is None:
                del topic["source"]
        for chain in chains:
            for name in ("tables", "of_rows", "delay"):
                if not chain[name]:
                    del chain[name]
        alone = {n: part for n, part in chains[0].items() if n not in ("name", "topics")}
        return {
            **found,
            **(alone if len(chains) == 1 else {"chains": chains}),
            "outputs": [output.data() for output in self.outputs],
        }
