"""Relations: named queries beside a query, which reads them as it reads those of its WITH."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from sqlglot import exp

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.model.files.yaml_file import raise_all
from kaflow_engine.sql.groups.runs.runs import check_run, reading_runs
from kaflow_engine.sql.groups.windows import with_windows_that_change
from kaflow_engine.sql.named.named import Named, NamedQuery, NamedSet, NamedTopic, whole
from kaflow_engine.sql.named.refused_checks import refuse_in_run
from kaflow_engine.sql.parse import parse_query


class Asking(Protocol):
    """Lets a query whose text begins at a place join the dynamic tables that it asks."""

    def __call__(self, query: exp.Query, *, at: Location | None) -> exp.Query: ...


def parse_relations(relations: Sequence[NamedQuery], asking: Asking) -> dict[str, exp.Query]:
    """Return the trees of relations by lower-case name.

    Raises:
        ModelError: One cannot be parsed, or asks a dynamic table as it cannot.
    """
    found: dict[str, exp.Query] = {}
    wrong: list[ModelError] = []
    for relation in relations:
        try:
            found[relation.name.lower()] = asking(_tree(relation), at=relation.start)
        except ModelError as error:
            wrong.append(error)
    raise_all(wrong)
    return found


def _tree(relation: NamedQuery) -> exp.Query:
    if relation.run is None or relation.below is None:
        tree = parse_query(relation.sql, relation.start)
        return with_windows_that_change(tree) if relation.windows_change else tree
    check_run(relation.run)
    refuse_in_run(relation.run)
    return reading_runs(whole(relation.below), relation.run)


def check_relations(
    queries: Sequence[exp.Query],
    relations: Sequence[Named],
    trees: Mapping[str, exp.Query],
) -> None:
    """Refuse relations that do not fit together.

    Args:
        queries: Those of the outputs.
        relations: As their author wrote them.
        trees: What they say.

    Raises:
        ModelError: One is read by nothing, reads itself, or is called as the topic of another.
    """
    wrong = list(_called_as_topics(relations))
    read = {name for query in queries for name in _reachable(query, trees)}
    circling: set[str] = set()
    for relation in relations:
        name = relation.name.lower()
        circle = _circle(name, trees)
        if circle and name not in circling:
            wrong.append(_reads_itself(relation, circle))
            circling.update(circle)
        elif not circle and name not in read:
            wrong.append(
                ModelError(
                    f"nothing reads the relation '{relation.name}'",
                    relation.at,
                    f"write dynamic_table_check('{relation.name}', <value>), or remove it"
                    if isinstance(relation, NamedSet)
                    else "name it after FROM or JOIN, or remove it",
                )
            )
    raise_all(wrong)


def counted_from(
    start: Location, relations: Sequence[NamedQuery], trees: Mapping[str, exp.Query]
) -> dict[str, exp.Query]:
    """Return the trees of relations with lines counted from where another query begins."""
    return {
        relation.name.lower(): _moved(
            trees[relation.name.lower()], (relation.start.line or 0) - (start.line or 0)
        )
        for relation in relations
    }


def topics_behind(query: exp.Query, relations: Mapping[str, exp.Query]) -> tuple[str, ...]:
    """Return the topics that a query reads, also through relations, in order of appearance."""
    found: dict[str, None] = {}
    for name in names_read(query):
        relation = relations.get(name.lower())
        below = (name,) if relation is None else topics_behind(relation, relations)
        found.update(dict.fromkeys(below))
    return tuple(found)


def names_read(query: exp.Query) -> tuple[str, ...]:
    """Return the names after FROM and JOIN that are none of the query's own WITH."""
    found: dict[str, None] = {}
    left: list[tuple[exp.Expr, frozenset[str]]] = [(query, frozenset())]
    while left:
        node, own = left.pop()
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier | exp.Dot):
            name = ".".join(part.name for part in node.parts)
            if name.lower() not in own:
                found[name] = None
        if isinstance(node, exp.CTE):
            own -= {node.alias.lower()}  # in it the name means what it means outside
        if isinstance(node, exp.Query):
            own |= {cte.alias.lower() for cte in node.ctes}
        left += [(child, own) for child in reversed(list(node.iter_expressions()))]
    return tuple(found)


def _reachable(query: exp.Query, relations: Mapping[str, exp.Query]) -> Iterator[str]:
    seen: set[str] = set()
    left = [query]
    while left:
        for name in {name.lower() for name in names_read(left.pop())} & set(relations) - seen:
            seen.add(name)
            left.append(relations[name])
            yield name


def _circle(name: str, relations: Mapping[str, exp.Query]) -> tuple[str, ...]:
    """Return a way from a relation back to itself; empty where there is none."""
    ways: list[tuple[str, ...]] = [(name,)]
    seen: set[str] = set()
    while ways:
        way = ways.pop()
        for read in names_read(relations[way[-1]]):
            if read.lower() == name:
                return (*way, name)
            if read.lower() in relations and read.lower() not in seen:
                seen.add(read.lower())
                ways.append((*way, read.lower()))
    return ()


def _called_as_topics(relations: Sequence[Named]) -> Iterator[ModelError]:
    """Yield an error for each reading whose topic has the name of another relation."""
    named = {relation.name.lower(): relation for relation in relations}
    for relation in relations:
        if not isinstance(relation, NamedTopic):
            continue
        other = named.get(relation.topic.lower(), relation)
        if other is not relation:
            yield ModelError(
                f"the relation '{other.name}' is called as the topic that '{relation.name}' reads",
                other.at,
                "call it otherwise: in this pipeline the name means the relation",
            )


def _reads_itself(relation: Named, circle: Sequence[str]) -> ModelError:
    if len(circle) == 2:
        return ModelError(
            f"the relation '{relation.name}' has the name of what it reads",
            relation.at,
            "in this pipeline the name means the relation; call it otherwise to read the topic",
        )
    return ModelError(
        f"relations read each other in a circle: {' → '.join(circle)}",
        relation.at,
        "let one of them read a topic instead",
    )


def _moved(tree: exp.Query, lines: int) -> exp.Query:
    moved = tree.copy()
    for node in moved.walk():
        if isinstance(line := node.meta.get("line"), int):
            node.meta["line"] = line + lines
    return moved
