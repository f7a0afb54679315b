"""What could be said better in a processor, although it is right."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kaflow_engine.model.brought.suggestions import Suggestion
from kaflow_engine.model.durations import format_duration
from kaflow_engine.model.lenses.functions.table import function_of
from kaflow_engine.model.lenses.grammar.source_text import SourceText
from kaflow_engine.model.lenses.grammar.syntax import (
    Everything,
    Expression,
    Field,
    Infix,
    Insert,
    Kind,
    Node,
    Projection,
    Query,
    Setting,
    Source,
    Statement,
    Text,
    With,
)
from kaflow_engine.model.lenses.lowering.expressions import calls, parts
from kaflow_engine.model.lenses.lowering.settings import Settings

_LONG = 7 * 86_400_000
_POLICY = "cleanup.policy"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Suggestion:
    of: Node
    said: str
    hint: str

    def placed(self, source: SourceText) -> Suggestion:
        """Return it with its place."""
        return Suggestion(said=self.said, at=source.place(self.of.offset), hint=self.hint)


def suggestions(
    statements: Sequence[Statement], settings: Settings, source: SourceText
) -> tuple[Suggestion, ...]:
    """Return what could be said better, in the order of the text.

    Args:
        statements: Of a processor without mistakes.
        settings: What it sets.
        source: Its text.
    """
    found: list[_Suggestion] = []
    kinds: dict[str, Kind] = {}
    for statement in statements:
        match statement:
            case Setting():
                found += _of_setting(statement)
            case With(name=name, query=query):
                found += _of_query(query, kinds, source)
                kinds[name.text] = "TABLE" if query.groups else query.kind
            case Insert():
                found += _of_query(statement.query, kinds, source)
                found += _of_output(statement, settings)
    found.sort(key=lambda each: each.of.offset)
    return tuple(each.placed(source) for each in found)


def _of_setting(setting: Setting) -> Iterator[_Suggestion]:
    if ".".join(part.text for part in setting.path) == "commit.interval.ms":
        said = "commit.interval.ms has no effect: a batch is committed when it is done"
        yield _Suggestion(of=setting, said=said, hint="remove it")


def _of_output(insert: Insert, settings: Settings) -> Iterator[_Suggestion]:
    said = settings.of_topic(insert.target.text).get(_POLICY)
    table = insert.query.kind == "TABLE" or bool(insert.query.groups)
    if said is not None and table != ("compact" in said.value):
        gets = f"'{insert.target.text}' gets {_POLICY}={said.value}"
        yield _Suggestion(
            of=insert.target,
            said=f"{gets}, and has rows of a table: those that do not change are lost in time"
            if table
            else f"{gets}, and has records of a stream: only the last one of each key stays",
            hint="write 'compact', or 'compact,delete'" if table else "write 'delete'",
        )


def _of_query(query: Query, kinds: Mapping[str, Kind], source: SourceText) -> Iterator[_Suggestion]:
    yield from _of_window(query, source)
    if query.having is not None and not _has_aggregate(query.having):
        said = "this HAVING reads no aggregate, and groups are made only to be left out"
        yield _Suggestion(of=query.having, said=said, hint="write it as WHERE, before GROUP BY")
    for item in query.projections:
        yield from _of_item(item, query)
    for expression in filter(None, (query.where, query.having)):
        yield from _of_condition(expression)
    yield from _of_joins(query, kinds)


def _of_window(query: Query, source: SourceText) -> Iterator[_Suggestion]:
    window = query.window
    if window is None:
        return
    if query.grace is None:
        yield _Suggestion(
            of=window,
            said="this window takes records for a day after its end, and is kept so long",
            hint="write GRACE BY <duration> for another time",
        )
    size, advance = window.size.milliseconds, window.advance
    if advance is not None and advance.milliseconds == size:
        said = "this HOP advances by its size"
        yield _Suggestion(
            of=window, said=said, hint=f"write WINDOW BY TUMBLE {format_duration(size)}"
        )
    word = len(window.kind)
    if source.text[window.offset + word : window.offset + word + 1] == "(":
        said = f"{window.kind.lower()}(…) in GROUP BY is the older way to write a window"
        yield _Suggestion(of=window, said=said, hint=f"write WINDOW BY {window.kind} …")


def _of_item(item: Projection, query: Query) -> Iterator[_Suggestion]:
    if not item.target and isinstance(item.value, Infix):
        said = f"this field is called '{item.written}'"
        yield _Suggestion(of=item, said=said, hint="write AS <name> behind it")
    for call in () if isinstance(item.value, Everything) else calls(item.value):
        if call.distinct and query.window is None and query.groups:
            said = f"{call.name.text.upper()}(DISTINCT …) keeps all values of a group for ever"
            yield _Suggestion(of=call, said=said, hint="add WINDOW BY, if it may end")


def _of_condition(expression: Expression) -> Iterator[_Suggestion]:
    if isinstance(expression, Infix) and expression.operator == "LIKE":
        pattern = expression.right
        if isinstance(pattern, Text) and not {"%", "_"} & {*pattern.value}:
            said = f"LIKE '{pattern.value}' has neither % nor _"
            yield _Suggestion(of=expression, said=said, hint="write =, or %")
    for part in parts(expression):
        yield from _of_condition(part)


def _of_joins(query: Query, kinds: Mapping[str, Kind]) -> Iterator[_Suggestion]:
    for join in query.joins:
        name = _called(join.source)
        table = query.kind == "TABLE" or kinds.get(join.source.name.text) == "TABLE"
        if join.condition is None:
            said = f"'{name}' is joined by its key, as no ON says it"
            hint = f"write ON {_called(query.source)}._key = {name}._key"
            yield _Suggestion(of=join, said=said, hint=hint)
        elif table and query.kind == "STREAM" and not _by_key(join.condition, name):
            said = f"a record meets each row of '{name}' that fits: it is not asked for by its key"
            yield _Suggestion(of=join, said=said, hint=f"write … = {name}._key, if one is meant")
        if join.within is not None and join.within.milliseconds > _LONG:
            said = f"events of both sides are kept for {format_duration(join.within.milliseconds)}"
            yield _Suggestion(
                of=join.within, said=said, hint="write a shorter WITHIN, if it may be"
            )
        if join.side == "LEFT" and query.where is not None and _drops(query.where, name):
            said = f"WHERE drops the rows of this LEFT JOIN that have no '{name}'"
            yield _Suggestion(of=join, said=said, hint="write JOIN, or … IS NULL OR in WHERE")


def _by_key(condition: Expression, called: str) -> bool:
    return any(each == (called, "_key") for each in _fields(condition))


def _drops(condition: Expression, called: str) -> bool:
    """Tell whether a condition compares a field of a source, and does not ask for NULL."""
    match condition:
        case Infix(operator="AND", left=left, right=right):
            return _drops(left, called) or _drops(right, called)
        case Infix(operator="=" | "<" | ">" | "<=" | ">=", left=left, right=right):
            sides = (each for each in (left, right) if isinstance(each, Field))
            return any(each.parts[0].text == called for each in sides)
        case _:
            return False


def _fields(expression: Expression) -> Iterator[tuple[str, ...]]:
    if isinstance(expression, Field):
        yield tuple(part.text for part in expression.parts)
    for part in parts(expression):
        yield from _fields(part)


def _has_aggregate(expression: Expression) -> bool:
    functions = (
        function_of(call.name.text.upper(), len(call.arguments)) for call in calls(expression)
    )
    return any(each is None or each.group == "aggregate" for each in functions)


def _called(source: Source) -> str:
    return (source.alias or source.name).text
