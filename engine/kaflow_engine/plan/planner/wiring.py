"""The operators of chains by ids: topics, joins, projections and ledgers, and the sinks behind."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kaflow_engine.errors import ModelError
from kaflow_engine.flow.decodes import decode_id
from kaflow_engine.flow.edges import Driving, Rows
from kaflow_engine.flow.graph import inputs_of
from kaflow_engine.flow.numbers import ledger_id, state_in
from kaflow_engine.flow.operators import (
    Decode,
    Gathers,
    KeyedJoin,
    Ledger,
    Operator,
    Project,
    Unnest,
)
from kaflow_engine.flow.sources import TopicParams
from kaflow_engine.flow.tables import Materialize, TableJoin
from kaflow_engine.flow.timed import Throttle
from kaflow_engine.flow.transforms import Transform
from kaflow_engine.model.columns import Column
from kaflow_engine.model.pipelines.own_settings import as_said_by
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.grouping.places import Places
from kaflow_engine.plan.planner.outputs.output import BranchParts
from kaflow_engine.plan.planner.steps import KeyStep
from kaflow_engine.sql.shape import Expr, QueryShape, UnnestShape
from kaflow_engine.sql.types.origins import lists_behind
from kaflow_engine.sql.types.wide_numbers import fitting


def relation_of(spec: PipelineSpec, place: tuple[int, int], below: str = "lookup") -> str:
    """Return what a projection is called: unique, as no topic or table has a `#` in its name.

    Args:
        spec: What the author wrote.
        place: Of its output, and of its branch as in BranchShape.
        below: What its rows are to others, where its place is below those of its output.
    """
    output, number = place
    name = spec.writes[output].target if len(spec.writes) > 1 else spec.name
    if number < 0:
        return f"{name}.{below}#{-number}"
    return f"{name}#{number}" if number else name


def projection(
    relation: str,
    rows: KeyedJoin | Driving | Rows,
    where: Sequence[Expr],
    columns: tuple[tuple[Column, str], ...],
    unnests: Sequence[UnnestShape],
) -> Project:
    """Return the projection of a relation: over the rows of an operator, or of records at once.

    Args:
        relation: Its name.
        rows: Where its rows come from.
        where: Conditions that are left; each is asked before the first list that it does not need.
        columns: What is selected, with its SQL.
        unnests: Lists that become rows.
    """
    left = list(where)
    found: list[Unnest] = []
    for number, unnest in enumerate(unnests):
        later = {each.alias for each in unnests[number:]}
        early = [part for part in left if not part.aliases & later]
        left = [part for part in left if part.aliases & later]
        lists = tuple((f"{unnest.alias}.{name}", of.sql) for name, of in unnest.lists)
        found.append(Unnest(where=_all_of(early), lists=lists))
    return Project(
        id=f"project:{relation}",
        rows=Rows(input=rows.id, key=None) if isinstance(rows, KeyedJoin) else rows,
        where=_all_of(left),
        columns=tuple((column, fitting(column.type, sql)) for column, sql in columns),
        unnests=tuple(found),
    )


def _all_of(parts: Sequence[Expr]) -> str | None:
    return " AND ".join(f"({part.sql})" for part in parts) or None


def refuse_unnested(spec: PipelineSpec, branches: Sequence[BranchParts]) -> None:
    """Refuse what is decided by rows before they are unnested.

    Raises:
        ModelError: with the way out.
    """
    if spec.on_dimension_update == "reemit" and any(each.shape.unnests for each in branches):
        raise ModelError(
            "'on_dimension_update: reemit' does not work with unnest",
            spec.place("on_dimension_update"),
            "write the joined rows to a topic, and unnest them in another pipeline",
        )
    for each in branches:
        own = as_said_by(spec, each.shape.said_at)
        for i, name in enumerate(() if each.groups else own.emission.require):
            column = each.shape.column(name)
            if column is not None and lists_behind(each.shape, column.expr):
                raise ModelError(
                    f"the required column '{name}' is made of elements of an unnested list, and "
                    "rows wait before they are unnested",
                    own.place("emission", "require", i),
                    "select the list as a column, too, and require that one",
                )


def ledger_after(chain: int, joins: Sequence[KeyedJoin], projects: Sequence[Project]) -> Ledger:
    """Return the ledger of a chain."""
    inputs = (*(join.id for join in joins), *(project.id for project in projects))
    return Ledger(id=ledger_id(chain), state=state_in(chain, len(joins) + 1), inputs=inputs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouped:
    """One GROUP BY, laid out."""

    depth: int
    """How many stand before it, and itself."""
    entries: tuple[Project, ...]
    """One, or of a union one for each branch."""
    aggregate: Gathers
    delay: int
    """Milliseconds that its rows may be behind the watermark."""
    places: Places | None
    """Where its rows are; None: not where groups could be made."""
    ledger: str | None = None
    """Of a transform: what sends on rows that it judges, behind it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainOperators:
    """A chain, laid out."""

    number: int
    steps: Sequence[KeyStep]
    """Its joins by key."""
    joins: tuple[KeyedJoin, ...]
    projects: Mapping[tuple[int, int], Project]
    """What sinks take, by the place of its branch: of its output, and among the branches."""
    ends: Mapping[tuple[int, int], Project]
    """Projections of the joined rows, by the place of the first branch behind them."""
    ledger: Ledger | None = None
    """Of all projections of its joined rows."""
    grouped: tuple[Grouped, ...] = ()
    tables: tuple[Materialize | TableJoin, ...] = ()
    """What makes its rows, where these are rows of a table."""
    looked_up: Mapping[QueryShape, str] = field(default_factory=dict[QueryShape, str])
    """The ids of the aggregates and tables that joins of other chains look up."""
    has_ledger: bool = False

    def ended(self, entries: Mapping[tuple[int, int], Project]) -> "ChainOperators":
        """Return the chain with projections of its joined rows for what gathers those of unions,
        and with the ledger behind all of them."""
        ends = {**self.ends, **entries}
        if not self.has_ledger:
            return replace(self, ends=ends)
        judged = self._judged(ends)
        return replace(self, ends=ends, ledger=ledger_after(self.number, self.joins, judged))

    def _judged(self, ends: Mapping[tuple[int, int], Project]) -> list[Project]:
        """Return the projections whose rows the ledger judges: behind transforms."""
        transforms = {
            name: each.aggregate.id
            for each in self.grouped
            if isinstance(each.aggregate, Transform)
            for name in each.aggregate.inputs
        }
        entries = (entry for each in self.grouped for entry in each.entries)
        every = dict.fromkeys((*ends.values(), *self.projects.values(), *entries))
        found: list[Project] = []
        left = list(ends.values())
        while left:
            one = left.pop(0)
            behind = transforms.get(one.id)
            if behind is None:
                found.append(one)
            else:
                left += [each for each in every if each.rows.input == behind]
        return list(dict.fromkeys(found))


def in_order(
    topics: Sequence[TopicParams],
    chains: Sequence[ChainOperators],
    throttles: Sequence[Throttle] = (),
) -> tuple[Operator, ...]:
    """Return the operators in topological order, with one that decodes each topic by each clock.

    Projections stand in the order of the outputs and their branches: rows of one record leave so.
    """
    ends = {place: each for chain in chains for place, each in chain.ends.items()}
    last = {
        place: each
        for chain in chains
        for place, each in chain.projects.items()
        if each != chain.ends.get(place)
    }
    grouped = [each for chain in chains for each in chain.grouped]
    ended = {each.id for each in ends.values()}
    return _behind_inputs(
        (
            *(
                Decode(id=decode_id(each.clock_name), source=i, clock=n)
                for i, topic in enumerate(topics)
                for n, each in enumerate(topic.by_clock)
            ),
            *(table for chain in chains for table in chain.tables),
            *(join for chain in chains for join in chain.joins),
            *(ends[place] for place in sorted(ends)),
            *(chain.ledger for chain in chains if chain.ledger is not None),
            *(n for each in sorted(grouped, key=_depth) for n in _behind(each, ended)),
            *(last[place] for place in sorted(last)),
            *throttles,
        )
    )


def _depth(grouped: Grouped) -> int:
    return grouped.depth


def _behind_inputs(operators: Sequence[Operator]) -> tuple[Operator, ...]:
    """Return operators each behind those whose rows it takes, else in the order that they have."""
    found: dict[str, Operator] = {}
    left = list(operators)
    while left:
        ready = next(each for each in left if all(name in found for name in inputs_of(each)))
        found[ready.id] = ready
        left.remove(ready)
    return tuple(found.values())


def _behind(grouped: Grouped, ended: Collection[str]) -> tuple[Operator, ...]:
    """Return what of a GROUP BY does not stand among the projections of joined rows."""
    before = [each for each in grouped.entries if each.id not in ended]
    return (*before, grouped.aggregate)
