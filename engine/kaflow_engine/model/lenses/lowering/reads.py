"""What a processor reads of topics, as its text says it."""

from collections.abc import Iterable, Iterator, Mapping

from kaflow_engine.model.lenses.grammar.source_text import SourceText
from kaflow_engine.model.lenses.grammar.syntax import (
    Everything,
    Expression,
    Field,
    Query,
    Setting,
    Statement,
    With,
)
from kaflow_engine.model.lenses.lowering.expressions import parts
from kaflow_engine.model.lenses.lowering.scope import FACETS
from kaflow_engine.model.sources.schema_first import FirstRead

_VALUE = "_value"


def first_reads(statements: Iterable[Statement], source: SourceText) -> Mapping[str, FirstRead]:
    """Return the topics that a processor reads, each with the first field whose topic is certain.

    Args:
        statements: The processor.
        source: Its text.
    """
    found: dict[str, FirstRead] = {}
    withs: set[str] = set()
    for statement in statements:
        if isinstance(statement, Setting):
            continue
        for name, read in _reads(statement.query, source):
            if name not in withs and (name not in found or found[name].field is None):
                found[name] = read if read.field else found.get(name, read)
        if isinstance(statement, With):
            withs.add(statement.name.text)
    return found


def _reads(query: Query, source: SourceText) -> Iterator[tuple[str, FirstRead]]:
    sources = (query.source, *(join.source for join in query.joins))
    names = {(each.alias or each.name).text: each.name.text for each in sources}
    for each in sources:
        yield each.name.text, FirstRead(at=source.place(each.name.offset))
    elements = {lateral.name.text for lateral in query.laterals}
    for field in _fields(query):
        path = [part.text for part in field.parts]
        of = names.get(path[0]) if path[1:] else None
        path = path[1:] if of is not None else path
        path = path[1:] if path[0] == _VALUE else path
        of = of or (query.source.name.text if len(names) == 1 else None)
        if of is not None and path and path[0] not in (*FACETS, *elements):
            yield of, FirstRead(at=source.place(field.offset), field=path[0])


def _fields(query: Query) -> Iterator[Field]:
    values = (item.value for item in query.projections)
    clauses = (query.where, *(join.condition for join in query.joins), query.event_time)
    for node in (
        *(value for value in values if not isinstance(value, Everything)),
        *(lateral.value for lateral in query.laterals),
        *(clause for clause in clauses if clause is not None),
        *query.groups,
    ):
        yield from _inside(node)


def _inside(node: Expression) -> Iterator[Field]:
    if isinstance(node, Field):
        yield node
    for part in parts(node):
        yield from _inside(part)
