"""Dimensions that are joined to tables, to the oracle: tables by the columns of the join."""

# pyright: basic

from collections.abc import Iterator, Mapping
from typing import Any

from sqlglot import exp

from tests.reference.grouped import parsed
from tests.reference.unions import NotExpressible


def dimensions_as_tables(author: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a pipeline in which such dimensions are said to be tables.

    Raises:
        NotExpressible: Some query joins them to tables, and another one reads them otherwise.
    """
    listed = set(author.get("state", {}).get("dimensions", ()))
    tables = {name for name, spec in author.get("topics", {}).items() if spec.get("table")}
    relations = [spec for spec in author.get("relations", {}).values() if "query" in spec]
    outputs = author.get("outputs") or [author]
    texts = [spec["query"] for spec in (*relations, *outputs) if "query" in spec]
    found: dict[str, set[tuple[str, ...]]] = {name: set() for name in listed}
    for text in texts if listed and tables else ():
        tree = parsed(text)
        read = {table.name for table in tree.find_all(exp.Table)}
        if read & listed and read & tables and read <= listed | tables:
            for name, columns in _keys(tree, listed):
                found[name].add(columns)
        elif read & listed:
            found = {name: keys | {()} for name, keys in found.items()}
    if any(len(keys) > 1 for keys in found.values()):
        raise NotExpressible("a dimension that is a table in one query, and no such in another")
    keys = {name: list(*keys) for name, keys in found.items() if keys - {()}}
    known = author.get("topics", {})
    said = {
        name: {**known.get(name, {}), "table": True, "primary_key": keys[name]} for name in keys
    }
    rest = [name for name in sorted(listed) if name not in keys]
    return (
        {**author, "topics": {**known, **said}, "state": {"dimensions": rest}} if keys else author
    )


def _keys(tree: exp.Expr, listed: set[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    aliases = {each.alias_or_name: each.name for each in tree.find_all(exp.Table)}
    for alias, name in aliases.items():
        if name not in listed:
            continue
        joins: list[exp.Join] = tree.args.get("joins") or []
        own = [join for join in joins if join.this.alias_or_name == alias] or joins[:1]
        columns = [c.name for c in own[0].args["on"].find_all(exp.Column) if c.table == alias]
        yield name, tuple(dict.fromkeys(columns))
