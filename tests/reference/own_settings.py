"""What queries say themselves, in the oracle's terms: as many pipelines that say it as a whole."""

# pyright: basic

from collections.abc import Iterator, Mapping
from typing import Any

from sqlglot import exp

from tests.reference.grouped import parsed
from tests.reference.unions import NotExpressible

Author = Mapping[str, Any]

_OF_JOINS = ("emission", "within", "row_time", "state")


def authors_of(author: Author) -> Iterator[Author]:
    """Yield a pipeline as it is, or one for each output where queries say things themselves.

    Raises:
        NotExpressible: Groups, or several queries behind one output, say something.
    """
    relations, outputs = author.get("relations", {}), author.get("outputs", ())
    if not any(key in spec for spec in (*relations.values(), *outputs) for key in _OF_JOINS):
        yield author
        return
    for output in outputs or [{"query": author["query"], **author["output"]}]:
        sql = output.get("query") or f'SELECT * FROM "{output["from"]}"'
        names = list(dict.fromkeys(_relations(sql, relations)))
        queries = [output, *(relations[name] for name in names)]
        saying = [spec for spec in queries if any(key in spec for key in _OF_JOINS)]
        sqls = [sql, *(relations[name].get("query", "") for name in names)]
        if len(saying) > 1 or (saying and any("GROUP" in each for each in sqls)):
            raise NotExpressible("when the rows of one query leave, beside those of another")
        whole = {key: each for key, each in author.items() if key not in ("query", "output")}
        own = {key: each for key, each in output.items() if key not in _OF_JOINS}
        for spec in saying:
            whole |= {key: spec[key] for key in _OF_JOINS if key in spec and key != "state"}
            whole |= {"state": _state(author.get("state", {}), spec.get("state", {}))}
        yield {
            **whole,
            "relations": {name: _silent(relations[name]) for name in names},
            "outputs": [own],
        }


def _silent(spec: Author) -> Author:
    return {key: each for key, each in spec.items() if key not in _OF_JOINS}


def _relations(sql: str, relations: Mapping[str, Any]) -> Iterator[str]:
    """Yield the relations behind a query."""
    for table in parsed(sql).find_all(exp.Table):
        name = ".".join(part.name for part in table.parts)
        if name in relations:
            yield name
            yield from _relations(relations[name].get("query", "SELECT 1"), relations)


def _state(whole: Author, own: Author) -> Author:
    """Return what is kept: what a query does not say of a topic, the pipeline does."""
    events, said = whole.get("events", {}), own.get("events", {})
    if "default_ttl" in said:
        return {**whole, "events": said}
    overrides = {**events.get("overrides", {}), **said.get("overrides", {})}
    return {**whole, "events": {**events, "overrides": overrides}}
