"""Calls of aggregate functions as what a group keeps for them: an accumulator, or its rows.

A call is merged where DuckDB's function over the accumulators of some rows gives what it gives over
those rows. Every other call is computed over all rows of the group.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from kaflow_engine.duck.functions.catalogue import aggregate
from kaflow_engine.duck.functions.signature import Function
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.operators import Accumulator, Calculated
from kaflow_engine.model.columns import Column
from kaflow_engine.operators.rows.row_text import from_text, pack, to_text, unpack
from kaflow_engine.plan.planner.grouping.exact_sums import (
    added,
    average,
    average_of,
    exact_sum,
    is_exact,
    is_whole,
    minus,
)
from kaflow_engine.sql.parse import parse_expression
from kaflow_engine.sql.shape import CallShape, GroupShape
from kaflow_engine.sql.syntax import DIALECT

FOLLOW_ORDER = frozenset(
    {
        *("first", "last", "any_value", "arbitrary", "first_value", "last_value"),
        *("arg_min", "argmin", "min_by", "arg_max", "argmax", "max_by"),
        *("arg_min_null", "arg_max_null", "arg_min_nulls_last", "arg_max_nulls_last"),
        *("list", "array_agg", "string_agg", "group_concat", "listagg", "mode"),
        *("approx_quantile", "approx_top_k"),
    }
)
"""Functions whose result depends on the order of the rows; others add up in any order, but for the
rounding of FLOAT and DOUBLE."""

_SAME = {
    **{name: "count" for name in ("count", "count_star")},
    **{name: "count_if" for name in ("count_if", "countif")},
    **{name: "avg" for name in ("avg", "mean")},
    **{name: "bool_and" for name in ("bool_and", "every", "logical_and")},
    **{name: "bool_or" for name in ("bool_or", "logical_or")},
    **{name: "first" for name in ("first", "arbitrary")},
    **{name: "arg_min" for name in ("arg_min", "argmin", "min_by")},
    **{name: "arg_max" for name in ("arg_max", "argmax", "max_by")},
    **{
        name: name
        for name in ("sum", "min", "max", "bit_and", "bit_or", "bit_xor", "product", "last")
    },
    "any_value": "any_value",
}
"""The functions that can be merged, by every name that DuckDB knows them by."""

_VARCHAR = "VARCHAR"
"""The type of a value in a box: NULL is a value of its own there, and -0.0 stays what it is."""


@dataclass(frozen=True, slots=True)
class _Part:
    """An accumulator of a call."""

    type: str
    row: str
    """The value of one row."""
    merge: str
    """The function that merges `{0}`, itself, and may read `{1}`, the one before it."""
    undone: str | None = None
    """The value of a row that is taken away; None: minus that of one row."""


_Merged = tuple[tuple[_Part, ...], Callable[..., str]]
"""The accumulators of a call, and SQL of the result over their names."""


def follows_order(group: GroupShape) -> bool:
    """Tell whether the result of a group depends on the order of its rows."""
    return any(c.function in FOLLOW_ORDER or aggregate(c.function) for c in group.calls)


def accumulate(
    calls: Sequence[CallShape],
    types: Mapping[str, str],
    results: Mapping[str, str],
    *,
    in_sessions: bool = False,
    retracts: bool = False,
) -> tuple[tuple[Accumulator, ...], tuple[Calculated, ...]]:
    """Return what groups keep for calls, and how their results come from it.

    Args:
        calls: The calls of one GROUP BY.
        types: The type of each argument, by name.
        results: The type of each result, by the name of its call.
        in_sessions: Groups may be joined, whose rows came in turns: what follows the order of rows
            is computed over the rows.
        retracts: Rows are taken away, too: what cannot be undone exactly is computed over the rows.

    Returns:
        The accumulators, each once; and a result for each call, in the order of `calls`.
    """
    known: dict[_Part, Accumulator] = {}
    names: dict[str, str] = {}
    found: list[Calculated] = []
    for call in calls:
        column = Column(call.name, results[call.name])
        merged = None
        of_project = aggregate(call.function)
        if call.plain and of_project is not None:
            merged = None if in_sessions else _in_steps(call, of_project, retracts=retracts)
        elif call.plain and retracts:
            merged = _subtracted(call, types, names)
        elif call.plain and not (in_sessions and call.function in FOLLOW_ORDER):
            merged = _merged(call, types, results[call.name], names)
        if merged is None:
            found.append(Calculated(column=column, sql=call.sql, keeps=True))
            continue
        parts, result = merged
        own: list[str] = []
        for part in parts:
            if part not in known:
                known[part] = _accumulator(f"$acc{len(known)}", part, own, retracts)
            own.append(identifier(known[part].column.name))
        sql = f"CAST({result(*own)} AS {column.type})"
        found.append(Calculated(column=column, sql=sql, keeps=False))
    return tuple(known.values()), tuple(found)


def _in_steps(call: CallShape, of: Function, *, retracts: bool) -> _Merged | None:
    """Return the accumulator of an aggregate of the project; None where its rows must be kept."""
    steps = of.steps
    if steps is None or (retracts and steps.taken is None):
        return None
    values, *others = parse_expression(call.sql).expressions
    value = values.this.sql(dialect=DIALECT)
    said = "".join(f", {each.sql(dialect=DIALECT)}" for each in others)
    merge = f"{steps.merged.key}(list({{0}}){said.replace('{', '{{').replace('}', '}}')})"
    first = f"{steps.first.key}({value}{said})"
    undone = None if steps.taken is None else f"{steps.taken.key}({value}{said})"

    def result(name: str) -> str:
        return f"{steps.result.key}({name}{said})"

    return (_Part(steps.kept, first, merge, undone),), result


def _accumulator(name: str, part: _Part, before: Sequence[str], retracts: bool) -> Accumulator:
    first = f"CAST({part.row} AS {part.type})"
    undone = part.undone and f"CAST({part.undone} AS {part.type})"
    return Accumulator(
        column=Column(name, part.type),
        first=first,
        merge=part.merge.format(identifier(name), *before),
        taken=(undone or minus(first, part.type)) if retracts else None,
    )


def _merged(
    call: CallShape, types: Mapping[str, str], result: str, names: dict[str, str]
) -> _Merged | None:
    """Return the accumulators of a call; None where its rows must be kept."""
    given, kinds, passes = _given(call, types, names)
    match _SAME.get(call.function), given, kinds:
        case "count", _, _:
            return _merged_count(call, given, passes)
        case "count_if", [x], _:
            return (_Part("HUGEINT", _if(passes, x), "sum({0})"),), _itself  # NULL of no values
        case "sum", [x], [kind] if added(kind):
            return (_Part(added(kind), _if(passes, x), "sum({0})"),), _itself
        case "avg", [x], [kind] if added(kind) and kind != "BOOLEAN":
            total = _Part(added(kind), _if(passes, x), "sum({0})")
            parts = total, _counted(f"{x} IS NOT NULL", passes)
            return parts, partial(average_of, kind=kind)
        case "min" | "max" | "any_value" as name, [x], [kind] if kind == result:
            return (_Part(kind, _if(passes, x), f"{name}({{0}})"),), _itself
        case "bool_and" | "bool_or" | "bit_and" | "bit_or" | "bit_xor" as name, [x], _:
            return (_Part(result, _if(passes, x), f"{name}({{0}})"),), _itself
        case "product", [x], _:
            return (_Part("DOUBLE", _if(passes, x), "product({0})"),), _itself
        case "first", [x], [kind] if kind == result:  # NULL may be the first value
            value = _Part(_VARCHAR, _if(passes, _box(x, kind)), "any_value({0})")
            return (value,), _unboxed(kind)
        case "last", [x], [kind] if kind == result and passes is None:
            return (_Part(_VARCHAR, _box(x, kind), "last({0})"),), _unboxed(kind)
        case "arg_min" | "arg_max" as name, [x, y], [kind, by] if kind == result:
            both = f"{x} IS NOT NULL AND {y} IS NOT NULL"
            wanted = both if passes is None else f"{both} AND {passes}"
            least = _Part(by, _if(wanted, y), f"{name.removeprefix('arg_')}({{0}})")
            value = _Part(_VARCHAR, _if(wanted, _box(x, kind)), f"{name}({{0}}, {{1}})")
            return (least, value), _unboxed(kind)
        case _:
            return None


def _merged_count(call: CallShape, given: Sequence[str], passes: str | None) -> _Merged | None:
    match given:
        case []:
            return ((_counted("TRUE", passes),), _itself) if call.function == "count_star" else None
        case [x]:
            return (_counted(f"{x} IS NOT NULL", passes),), _itself
        case _:
            return None


def _subtracted(call: CallShape, types: Mapping[str, str], names: dict[str, str]) -> _Merged | None:
    """Return the accumulators of a call from which rows are taken away; None where its rows must
    be kept. Without a value that is not NULL there is no result, so such values are counted.
    """
    given, kinds, passes = _given(call, types, names)
    match _SAME.get(call.function), given, kinds:
        case "count", _, _:
            return _merged_count(call, given, passes)
        case "count_if", [x], ["BOOLEAN"]:
            values = _counted(f"{x} IS NOT NULL", passes)
            return (_counted(x, passes), values), "CASE WHEN {1} > 0 THEN {0} END".format
        case "bool_and", [x], ["BOOLEAN"]:
            parts = _counted(f"NOT {x}", passes), _counted(x, passes)
            return parts, "CASE WHEN {0} > 0 THEN FALSE WHEN {1} > 0 THEN TRUE END".format
        case "bool_or", [x], ["BOOLEAN"]:
            parts = _counted(x, passes), _counted(f"NOT {x}", passes)
            return parts, "CASE WHEN {0} > 0 THEN TRUE WHEN {1} > 0 THEN FALSE END".format
        case "bit_xor", [x], [kind] if is_whole(kind):
            row = _if(passes, x)
            itself = _Part(kind, row, "bit_xor({0})", undone=row)
            parts = itself, _counted(f"{x} IS NOT NULL", passes)
            return parts, "CASE WHEN {1} > 0 THEN {0} END".format
        case "sum" | "avg" as name, [x], [kind] if is_exact(kind):
            return _summed(name, x, kind, passes)
        case _:
            return None


def _summed(name: str, x: str, kind: str, passes: str | None) -> _Merged | None:
    """Return the accumulators of an exact sum or average, and of how many values it is."""
    if name == "avg" and kind == "BOOLEAN":
        return None
    total = exact_sum(kind)
    parts = [_Part(kept, _if(passes, part.format(x)), "sum({0})") for kept, part in total.parts]
    count = _counted(f"{x} IS NOT NULL", passes)

    def result(*columns: str) -> str:
        *sums, number = columns
        if name == "avg":
            return average(total.digits(*sums), number, kind)
        return f"CASE WHEN {number} > 0 THEN {total.value(*sums)} END"

    return (*parts, count), result


def _given(
    call: CallShape, types: Mapping[str, str], names: dict[str, str]
) -> tuple[list[str], list[str], str | None]:
    """Return what a call is given, its types, and its filter."""
    arguments = list(_arguments(call, names))
    passes = None
    if call.filter is not None:
        wanted = dict(call.arguments)[call.filter]
        passes = _read(names.setdefault(wanted.sql, call.filter))
    return [_read(name) for name in arguments], [types[name] for name in arguments], passes


def _arguments(call: CallShape, names: dict[str, str]) -> Iterator[str]:
    """Yield what a call is given; equal arguments under the name of the first one."""
    for name, expr in call.arguments:
        if name != call.filter:
            yield names.setdefault(expr.sql, name)


def _read(name: str) -> str:
    return identifier(f"$row.{name}")


def _if(passes: str | None, sql: str) -> str:
    return sql if passes is None else f"CASE WHEN {passes} THEN {sql} END"


def _counted(condition: str, passes: str | None) -> _Part:
    wanted = condition if passes is None else f"{condition} AND {passes}"
    return _Part("HUGEINT", f"CASE WHEN {wanted} THEN 1 ELSE 0 END", "sum({0})")


def _itself(name: str) -> str:
    return name


def _box(x: str, kind: str) -> str:
    return pack([to_text(x, kind)])


def _unboxed(kind: str) -> Callable[..., str]:
    """Return what gives the value in the last one of some accumulators."""

    def value(*names: str) -> str:
        return from_text(f"{unpack(names[-1])}[1]", kind)

    return value
