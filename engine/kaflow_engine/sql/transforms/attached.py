"""Tables of databases that a query joins: its rows go past them as past a transform, which asks the
database for the rows with the values of its join condition."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from kaflow_engine.errors import Location, ModelError, SqlError, UnknownName
from kaflow_engine.flow.origins.databases import AttachedParams
from kaflow_engine.flow.transforms import IN, PASSED, LookupParams
from kaflow_engine.model.columns import Column
from kaflow_engine.sql.flat import Flat, Group
from kaflow_engine.sql.groups.shapes import TransformShape
from kaflow_engine.sql.joins import Condition, read_conditions
from kaflow_engine.sql.scope import NeedsSchema, Relation, Schemas, Scope, element
from kaflow_engine.sql.shape import JoinKind
from kaflow_engine.sql.streamable import line_of
from kaflow_engine.sql.syntax import at_line
from kaflow_engine.sql.tables.asked import VALUE, Asked, asked_by
from kaflow_engine.sql.tables.joined import said_kind

LOOKUP = "lookup"
"""What the alias of such rows begins with."""
ON = "$on"
"""What the names of the values begin with by which rows are looked up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachedText:
    """What an author says of a table that is looked up in its database."""

    name: str
    params: AttachedParams
    refresh: int
    """Milliseconds for which an answer may be used again."""


@dataclass(kw_only=True)
class _Renamed:
    """Columns of rows under the names that they have behind a look-up."""

    group: Group
    known: dict[str, str] = field(default_factory=dict[str, str])
    """By SQL of what they are of the rows before."""

    def column(self, called: str, tree: exp.Expr) -> exp.Expr:
        """Return what an expression over the rows before is behind the look-up."""
        text = tree.sql()
        name = self.known.get(text)
        if name is None:
            name = called
            while f"{IN}{name}" in self.group.keys:
                name += "'"
            self.known[text] = name
            self.group.keys[f"{IN}{name}"] = tree.copy()
        return self.group.column(name)


def refuse_read(attached: AttachedText | None, at: Location | None) -> None:
    """Refuse to read what can only be looked up.

    Raises:
        SqlError: With the way out.
    """
    if attached is not None:
        has_records = attached.params.has_records
        raise SqlError(
            f"'{attached.name}' is attached: its rows are looked up, and not read",
            at,
            "name it after LEFT JOIN or JOIN"
            + (f"; or remove attached from sources.{attached.name}" if has_records else ""),
        )


def join_attached(
    join: exp.Join,
    attached: AttachedText,
    scope: Scope,
    flat: Flat,
    schemas: Schemas,
    wrong: list[ModelError],
) -> None:
    """Join a table of a database to rows.

    Args:
        join: As it was written.
        attached: The table.
        scope: What is read so far; the table comes into it.
        flat: The same rows; the look-up is added to them.
        schemas: Columns of topics, and of the table.
        wrong: Where mistakes are noted after which reading can go on.

    Raises:
        SqlError: It cannot be looked up so.
        NeedsSchema: Columns are not known yet.
    """
    at = at_line(scope.at, line_of(join))
    columns = schemas(attached.name)
    unknown = [t for each in scope.relations if each.outputs is None for t in each.topics]
    if columns is None or unknown:
        raise NeedsSchema([*unknown, *([] if columns else [attached.name])], at)
    relation = Relation(
        alias=join.this.alias_or_name,
        topics=(attached.name,),
        outputs={},
        base=flat.unique(join.this.alias_or_name),
    )
    asked = asked_by(join)
    shown = {c.name: c for c in columns} if asked is None else _value(asked, attached, columns, at)
    relation.outputs = {n: element(relation.base, c.name) for n, c in shown.items()}
    conditions = read_conditions(join, relation, scope, flat, wrong)
    if conditions is not None:
        kind = said_kind(join)
        _look_up(attached, kind, conditions, shown, scope, flat, at, once=asked is not None)


def _value(
    asked: Asked, attached: AttachedText, columns: Sequence[Column], at: Location | None
) -> Mapping[str, Column]:
    """Return the column that is asked, under the name that questions have for it."""
    found = [column for column in columns if column.name.lower() == asked.key.lower()]
    if not found:
        raise UnknownName("column", asked.key, [column.name for column in columns], at)
    return {VALUE: found[0]}


def _look_up(
    attached: AttachedText,
    kind: JoinKind,
    conditions: Sequence[Condition],
    shown: Mapping[str, Column],
    scope: Scope,
    flat: Flat,
    at: Location | None,
    *,
    once: bool,
) -> None:
    """Let rows go past a table, and give all columns the names that they have behind it."""
    *before, relation = scope.relations
    _refuse(attached, kind, flat, at)
    pairs = [_pair(each, relation, at) for each in conditions]
    group = Group(alias=flat.unique(LOOKUP), line=conditions[0].line)
    renamed = _Renamed(group=group)
    for each in before:
        if each.outputs is not None:
            each.outputs = {
                name: renamed.column(f"{each.alias}.{name}", tree)
                for name, tree in each.outputs.items()
            }
        each.record = {
            name: renamed.column(f"{each.alias}.{name}", tree) for name, tree in each.record.items()
        }
    scope.merged = {
        name: renamed.column(f"using.{name}", tree)
        for name, tree in scope.merged.items()
        if not _reads(tree, relation)
    }
    for number, (outer, _) in enumerate(pairs):
        group.keys[f"{IN}{ON}{number}"] = outer
    for name, tree in flat.record.items():
        group.keys[f"{PASSED}{name}"] = tree
    found = [(f"{relation.alias}.{name}", column) for name, column in shown.items()]
    group.transform = TransformShape(
        name=attached.name,
        params=LookupParams(
            table=attached.params,
            left=kind == "LEFT",
            on=tuple(shown[name].name for _, name in pairs),
            columns=tuple((called, column.name) for called, column in found),
            types=tuple(shown.values()),
            refresh=attached.refresh,
            once=once,
        ),
        schema=(
            *((f"{ON}{number}", None) for number in range(len(pairs))),
            *((called, column.type) for called, column in found),
        ),
    )
    flat.groups.append(group)
    flat.record = {name: group.column(f"{PASSED}{name}") for name in flat.record}
    behind = {n: group.column(called) for n, (called, _) in zip(shown, found, strict=True)}
    if once:
        relation.record = behind
    else:
        relation.outputs = behind


def _refuse(attached: AttachedText, kind: JoinKind, flat: Flat, at: Location | None) -> None:
    name = attached.name
    if kind not in ("LEFT", "INNER"):
        raise SqlError(
            f"{kind} JOIN would keep rows of '{name}' that nothing meets",
            at,
            "write LEFT JOIN: each row looks up what is there",
        )
    if flat.is_upsert or flat.changes_rows:
        raise SqlError(
            f"'{name}' is looked up by rows of a table, which change and go",
            at,
            f"read '{name}' as a source of records, without attached; or look it up by events"
            if attached.params.has_records
            else "look it up by events",
        )


def _pair(condition: Condition, relation: Relation, at: Location | None) -> tuple[exp.Expr, str]:
    """Return what rows are looked up by, and the column of the table that it must equal."""
    for outer, inner in (
        (condition.left, condition.right),
        (condition.right, condition.left),
    ):
        name = _own(inner, relation)
        if name is not None and not _reads(outer, relation):
            return outer, name
    raise SqlError(
        f"the join condition does not compare a column of '{relation.alias}' with the rows before "
        "it",
        at,
        f"write ON {relation.alias}.<column> = <expression>, joined by AND; conditions on the "
        "table alone go into `where` of the source",
    )


def _own(tree: exp.Expr, relation: Relation) -> str | None:
    """Return the column of a table that an expression is; None of another one."""
    tree = tree.unnest()
    names = {**(relation.outputs or {}), **relation.record}
    return next((name for name, column in names.items() if column == tree), None)


def _reads(tree: exp.Expr, relation: Relation) -> bool:
    return any(c.name.partition(".")[0] == relation.base for c in tree.find_all(exp.Column))
