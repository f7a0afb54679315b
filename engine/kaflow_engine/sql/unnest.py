"""Unnested lists: `unnest(…)` in SELECT, after CROSS JOIN or a comma, and in LATERAL."""

from dataclasses import dataclass

from sqlglot import exp

from kaflow_engine.errors import Location, ModelError, SqlError
from kaflow_engine.flow.operators import PLACE
from kaflow_engine.model.files.yaml_file import raise_all
from kaflow_engine.sql.flat import Flat, Lists
from kaflow_engine.sql.groups.distinct import is_distinct
from kaflow_engine.sql.groups.grouping import is_grouped
from kaflow_engine.sql.scope import Relation, Scope, element, named_by
from kaflow_engine.sql.select_list import conjuncts, resolved, selected_columns
from kaflow_engine.sql.streamable import is_unnest, line_of, refusals
from kaflow_engine.sql.syntax import at_line

UNNEST = "unnest"
"""What DuckDB calls an unnested list, and its column, that have no name."""


@dataclass(kw_only=True)
class Unnester:
    """Reads what a SELECT unnests, in the order in which it happens."""

    at: Location | None
    wrong: list[ModelError]
    flat: Flat
    """What is read so far; lists are added to it, and the conditions of a LATERAL."""

    def joined(self, join: exp.Join, scope: Scope) -> Relation:
        """Read an unnested list after CROSS JOIN or a comma, or a LATERAL."""
        node = join.this
        table: exp.TableAlias | None = node.args.get("alias")
        names = [column.name for column in table.columns] if table else []
        inner = node.this if isinstance(node, exp.Lateral) else node
        if isinstance(inner, exp.Unnest):
            return self._list(inner, node.alias, names, scope)
        return self._lateral(inner.this, node.alias or UNNEST, names, scope)

    def selected(self, select: exp.Select, scope: Scope) -> dict[str, exp.Expr]:
        """Read a select list; lists unnested in it stand side by side."""
        made = Lists()

        def of_element(call: exp.Explode) -> exp.Expr:
            tree = scope.resolve(call.this)
            known = (name for name, other in made.lists.items() if other == tree)
            name = next(known, None) or _free(call.this.name or UNNEST, made)
            made.alias = made.alias or self.flat.unique(UNNEST)
            made.lists[name] = tree
            return element(made.alias, name)

        scope.unnest = of_element
        columns = selected_columns(select, scope, self.wrong)
        scope.unnest = None
        if made.lists:
            self._add(made, select)
        return columns

    def _add(self, lists: Lists, node: exp.Expr) -> None:
        if self.flat.groups and (transform := self.flat.groups[-1].transform) is not None:
            raise SqlError(
                f"a list of a row of '{transform.name}' is unnested",
                at_line(self.at, line_of(node)),
                "let the transform return a row for each element; or write the list to a topic, "
                "and unnest it in another pipeline",
            )
        if self.flat.groups:
            changes = self.flat.groups[-1].append is not None
            raise of_groups(at_line(self.at, line_of(node)), changes)
        self.flat.unnests.append(lists)

    def _list(self, node: exp.Unnest, alias: str, names: list[str], scope: Scope) -> Relation:
        if len(names) > 1:
            raise SqlError(
                f"unnest gives one column, and {len(names)} are named",
                at_line(self.at, line_of(node)),
                "name one, and read the fields of a struct as name.field",
            )
        name = names[0] if names else UNNEST
        unique = self.flat.unique(alias or UNNEST)
        self._add(Lists(alias=unique, lists={name: scope.resolve(node.expressions[0])}), node)
        return Relation(
            alias=alias or UNNEST,
            topics=(),
            outputs={name: element(unique, name)},
            base=unique,
            record={PLACE: element(unique, PLACE)},
        )

    def _lateral(self, select: exp.Select, alias: str, names: list[str], outer: Scope) -> Relation:
        raise_all(refusals(select, self.at))
        if is_grouped(select) or is_distinct(select):
            raise SqlError(
                "LATERAL can unnest lists only, and not group them",
                at_line(self.at, line_of(select.args.get("group"), select)),
                "use functions of lists, such as list_sum(x) or list_aggregate(x, 'max')",
            )
        scope = Scope(at=self.at, named=named_by(select), outer=outer)
        clause = select.args.get("from_") or select.args.get("from")
        if clause is not None:
            first: exp.Unnest = clause.this
            columns = [column.name for column in first.args["alias"].columns] if first.alias else []
            scope.add(self._list(first, first.alias, columns, scope), first)
        joins: list[exp.Join] = select.args.get("joins") or []
        for join in joins:
            if not is_unnest(join):
                raise SqlError(
                    "LATERAL can unnest lists only",
                    at_line(self.at, line_of(join)),
                    "join the topic in the outer query, before the LATERAL",
                )
            scope.add(self.joined(join, scope), join)
        where = select.args.get("where")
        if where:
            self.flat.where.extend(resolved(conjuncts(where.this), scope, self.wrong))
        columns = self.selected(_renamed(select, names), scope)
        return Relation(alias=alias, topics=(), outputs=columns, base=outer.relations[0].base)


def of_groups(at: Location | None, changes: bool = False) -> SqlError:
    """Return what is said where a list of a row of groups, or of changes, is unnested."""
    return SqlError(
        f"a list of {'a change of a table' if changes else 'an aggregated row'} is unnested",
        at,
        "write the list to a topic, and unnest it in another pipeline",
    )


def _renamed(select: exp.Select, names: list[str]) -> exp.Select:
    """Give columns the names that stand behind the alias of a LATERAL."""
    if not names:
        return select
    found = select.copy()
    parts = found.expressions
    named = [exp.alias_(part.unalias(), name) for part, name in zip(parts, names, strict=False)]
    found.set("expressions", [*named, *parts[len(names) :]])
    return found


def _free(name: str, made: Lists) -> str:
    taken, found, number = {each.lower() for each in made.lists}, name, 2
    while found.lower() in taken:
        found, number = f"{name}_{number}", number + 1
    return found
