"""Refuses SQL that cannot run on a stream, with the reason and the way out."""

import re
from collections.abc import Callable, Iterator

from sqlglot import exp

from kaflow_engine.errors import Location, SqlError
from kaflow_engine.sql.syntax import DIALECT, at_line

Refusal = tuple[exp.Expr, str, str]
"""The offending node, what is wrong, and what to do."""
Rule = Callable[[exp.Select], Refusal | None]

_GROUPED = (
    "group the rows: GROUP BY k, with first, last, arg_min(x, t) or arg_max(x, t) of each group"
)
_FIRST = (
    "write QUALIFY row_number() OVER (PARTITION BY k ORDER BY t) = 1, which is the first row of "
    "each k; or group the rows: GROUP BY k"
)
_WITH_CONDITION = "write LEFT JOIN … ON a.x = b.y"
_CLAUSES: tuple[tuple[str, str, str], ...] = (
    ("order", "ORDER BY cannot run on a stream",
     "remove it; rows of one output key keep their order"),
    ("limit", "LIMIT cannot run on a stream", "remove it; `kaflow run --max-records` bounds a run"),
    ("offset", "OFFSET cannot run on a stream", "remove it"),
    ("windows", "WINDOW cannot run on a stream", _GROUPED),
    ("sample", "SAMPLE cannot run on a stream", "filter with WHERE instead"),
    ("laterals", "LATERAL cannot run on a stream", "select from topics and joins only"),
)  # fmt: skip
_SET_OPERATIONS = {
    "INTERSECT": "join the topics: … JOIN b ON a.x = b.x",
    "EXCEPT": "use LEFT JOIN … ON a.x = b.x with WHERE b.x IS NULL",
}
_QUERIES = (exp.Select, exp.SetOperation)
_VOLATILE_NODES = (exp.Rand, exp.Randn, exp.Uuid)
_VOLATILE = {
    "random", "uuid", "gen_random_uuid", "uuidv4", "uuidv7", "setseed", "nextval", "currval",
    "txid_current", "getvariable", "current_setting", "pg_backend_pid", "version",
    "current_version", "current_query", "current_query_id", "current_connection_id",
    "current_transaction_id", "pg_postmaster_start_time", "ago", "current_localtime", "stats",
}  # fmt: skip
_OUTSIDE = re.compile(
    r"(read|parquet|sniff|duckdb|pragma|enable|disable)_\w+|\w+_(scan|attach|execute)|(sqlite|postgres|mysql)_query"
    r"|getenv|glob|query|query_table|which_secret|(force_)?checkpoint|write_log|(pg_)?sleep(_ms)?"
    r"|json_execute_serialized_sql|truncate_duckdb_logs"
)
"""Functions that read files or settings, reach the network, or hold a task up."""
PLACES = "unnest(generate_series(1, len(x))) beside unnest(x) in SELECT gives the places"
_KEEPING = (
    "write CROSS JOIN unnest(…), with conditions in WHERE; to keep rows whose list is empty, "
    "unnest CASE WHEN len(x) > 0 THEN x ELSE [NULL] END"
)
_PLAIN_TABLE = {"this", "alias", "db", "catalog", "joins"}


def row_number_of(query: exp.Query) -> exp.Window | None:
    """Return the window of `QUALIFY row_number() OVER (…) = 1`; None of another QUALIFY."""
    clause: exp.Qualify | None = query.args.get("qualify")
    condition = clause.this.unnest() if clause is not None else None
    if not isinstance(condition, exp.EQ) or condition.expression.sql() != "1":
        return None
    window = condition.this.unnest()
    plain = isinstance(window, exp.Window) and isinstance(window.this, exp.RowNumber)
    return window if plain and not window.args.get("spec") else None


def reject_clauses(query: exp.Query) -> Iterator[Refusal]:
    """Refuse clauses that need the whole of a table."""
    if query.args.get("qualify") and row_number_of(query) is None:
        yield query.args["qualify"], "this QUALIFY cannot run on a stream", _FIRST
    for name, what, cure in _CLAUSES:
        found: list[exp.Expr] | exp.Expr | None = query.args.get(name)
        if found:
            yield (found[0] if isinstance(found, list) else found), what, cure


def reject_set_operations(query: exp.Query) -> Refusal | None:
    """Refuse what puts SELECTs together otherwise than one after the other."""
    for node in query.find_all(exp.SetOperation):
        clause = node.find_ancestor(exp.With)
        if clause is not None and clause.recursive:
            continue  # a recursive WITH is refused as such
        name = type(node).__name__.upper()
        if not isinstance(node, exp.Union):
            return node.expression, f"{name} cannot run on a stream", _SET_OPERATIONS[name]
        if node.args.get("distinct"):
            return (
                node.expression,
                "UNION drops duplicates, which cannot run on a stream",
                ("write UNION ALL; drop duplicates where the topic is read"),
            )
        if node.args.get("by_name"):
            way_out = "select the columns in the same order in each branch, and write UNION ALL"
            return node.expression, "UNION ALL BY NAME cannot run here", way_out
    return None


def reject_windows(query: exp.Select) -> Refusal | None:
    """Refuse functions of a row among others."""
    first = [row_number_of(select) for select in query.find_all(exp.Select)]
    for window in query.find_all(exp.Window):
        if not any(window is each for each in first):
            return window, "window functions (OVER) cannot run on a stream", _FIRST
    return None


def reject_subqueries(query: exp.Select) -> Refusal | None:
    """Refuse queries inside expressions; derived tables after FROM and JOIN are fine."""
    for node in query.find_all(exp.Exists, exp.Subquery, exp.In, *_QUERIES):
        inside = isinstance(node, exp.Exists) or bool(node.args.get("query"))
        if isinstance(node, exp.Subquery):
            inside = not isinstance(
                node.parent, exp.From | exp.Join | exp.Lateral | exp.SetOperation
            )
        elif isinstance(node, _QUERIES) and node is not query:
            inside = not isinstance(node.parent, exp.Subquery | exp.CTE | exp.SetOperation)
        if inside:
            return (
                node,
                "a subquery inside an expression cannot run on a stream",
                "join the topic instead",
            )
    return None


def reject_unnest(query: exp.Select) -> Refusal | None:
    """Refuse `unnest` where no row can be made of each element, and its other forms."""
    for node in query.find_all(exp.Explode, exp.Unnest):
        found = _unnest(node)
        if found:
            return node, *found
    return None


def _unnest(node: exp.Explode | exp.Unnest) -> tuple[str, str] | None:
    above = node.find_ancestor(exp.Explode, exp.Unnest, exp.Select, exp.Lambda)
    if isinstance(above, exp.Explode | exp.Unnest):
        way_out = "unnest the outer list in a derived table, and its elements in the SELECT around"
        return "unnest in unnest cannot run on a stream", way_out
    if type(node) not in (exp.Explode, exp.Unnest):
        return "only unnest makes rows of a list", "write unnest(…)"
    if node.args.get("offset"):
        return "WITH ORDINALITY cannot run here", PLACES
    if isinstance(node, exp.Explode) and node.expressions:
        option = node.expressions[0].name
        return f"unnest with '{option}' cannot run on a stream", "unnest one level after the other"
    if isinstance(node, exp.Unnest) and len(node.expressions) != 1:
        return "unnest takes one list", "write unnest(a) and unnest(b) in SELECT, side by side"
    where = isinstance(above, exp.Lambda) or (
        isinstance(node, exp.Explode) and not _is_selected(node, above)
    )
    if where or (isinstance(node, exp.Unnest) and not _is_read(node)):
        way_out = "unnest in the SELECT list of a derived table, and filter in the SELECT around"
        return "unnest cannot stand here", way_out
    return None


def _is_selected(node: exp.Expr, select: exp.Expr | None) -> bool:
    """Tell whether a node stands in the select list of a SELECT."""
    while node.parent is not None and node.parent is not select:
        node = node.parent
    return node.arg_key == "expressions"


def _is_read(node: exp.Unnest) -> bool:
    """Tell whether a list is unnested after FROM, a comma or CROSS JOIN."""
    return isinstance(node.parent, exp.From | exp.Join | exp.Lateral)


def is_unnest(join: exp.Join) -> bool:
    """Tell whether a list is unnested where a topic is joined otherwise, or a LATERAL stands."""
    lateral = isinstance(join.this, exp.Lateral)
    inner = join.this.this if lateral else join.this
    if isinstance(inner, exp.Subquery) and isinstance(inner.this, exp.Select):
        clause = inner.this.args.get("from_") or inner.this.args.get("from")
        if clause is None:
            return lateral or inner.find(exp.Explode) is not None
        inner = clause.this
    return isinstance(inner, exp.Unnest)


def reject_volatile(query: exp.Query) -> Refusal | None:
    """Refuse functions whose value would change when a batch is replayed."""
    for node in query.find_all(exp.Func):
        name = _called(node)
        of_today = name == "age" and len(node.expressions) == 1
        if isinstance(node, _VOLATILE_NODES) or name in _VOLATILE or of_today:
            return (
                node,
                f"the function '{name}' gives another value when a batch is replayed",
                "use a column of the record, or now(), which is pinned to the batch time",
            )
    return None


def reject_outside(query: exp.Query) -> Refusal | None:
    """Refuse functions that would reach out of the pipeline."""
    for node in query.find_all(exp.Func):
        if _OUTSIDE.fullmatch(_called(node)):
            return (
                node,
                f"the function '{_called(node)}' reaches out of the pipeline",
                "a pipeline reads topics only; files can be the history of a topic",
            )
    return None


def reject_tables(query: exp.Select) -> Refusal | None:
    """Refuse what may stand behind a table, and columns by pattern."""
    for node in query.find_all(exp.Table, exp.Columns):
        if isinstance(node, exp.Columns):
            return node, "COLUMNS(…) cannot run here", "name the columns"
        more = {name for name, found in node.args.items() if found} - _PLAIN_TABLE
        if more and isinstance(node.this, exp.Identifier):
            return (
                node,
                f"unsupported clause after topic '{node.name}'",
                ("write FROM topic or FROM topic alias"),
            )
    return None


def _called(node: exp.Func) -> str:
    """Return the name of a function as DuckDB has it."""
    if isinstance(node, _VOLATILE_NODES):
        return node.sql(dialect=DIALECT).partition("(")[0].lower()
    return (node.name if isinstance(node, exp.Anonymous) else node.sql_name()).lower()


def reject_joins(query: exp.Select) -> Refusal | None:
    """Refuse joins that are none over equalities."""
    joins: list[exp.Join] = query.args.get("joins") or []
    for join in joins:
        found = _join(join)
        if found:
            return join, *found
    return None


def _join(join: exp.Join) -> tuple[str, str] | None:
    kind, side, method = (str(part or "").upper() for part in (join.kind, join.side, join.method))
    if is_unnest(join):
        on = join.args.get("on")
        always = on is None or (isinstance(on, exp.Boolean) and bool(on.this))
        plain = not side and not method and kind in {"", "CROSS", "INNER"}
        if plain and always and not join.args.get("using"):
            return None
        return "a list can be unnested by CROSS JOIN only", _KEEPING
    if isinstance(join.this, exp.Lateral):
        way_out = "unnest a list in it, or join the topic with LEFT JOIN … ON a.x = b.y"
        return "this LATERAL cannot run on a stream", way_out
    for name in ("SEMI", "ANTI"):
        if name in (kind, side):
            way_out = "use LEFT JOIN with WHERE … IS NULL or IS NOT NULL"
            return f"{name} JOIN cannot run on a stream", way_out
    if method == "NATURAL":
        return "NATURAL JOIN cannot run here", "name the columns: JOIN … USING (x)"
    if method:
        return f"{method} JOIN cannot run here", _WITH_CONDITION
    if kind in {"CROSS", "POSITIONAL"} or not (join.args.get("on") or join.args.get("using")):
        return "a join without a condition cannot run on a stream", _WITH_CONDITION
    return None


WHOLE: tuple[Rule, ...] = (reject_subqueries, reject_windows, reject_unnest)
"""Of these and the clauses, one mistake often breaks several."""
RULES: tuple[Rule, ...] = (reject_outside, reject_volatile, reject_tables, reject_joins)


def refusals(query: exp.Select, at: Location | None) -> list[SqlError]:
    """Apply the rules to a SELECT; each error stands at the line of the offending node."""
    found: list[Refusal | None] = [*reject_clauses(query)]
    if not found:
        found = [next((refusal for rule in WHOLE if (refusal := rule(query))), None)]
    found += [rule(query) for rule in RULES]
    return [
        SqlError(refusal[1], at_line(at, line_of(refusal[0])), refusal[2])
        for refusal in found
        if refusal is not None
    ]


def line_of(*nodes: exp.Expr | None) -> int | None:
    """Return the line of the SQL text on which the first node stands of which sqlglot knows it."""
    for inner in (inner for node in nodes if node is not None for inner in node.walk()):
        line = inner.meta.get("line") if inner.meta else None
        if isinstance(line, int):
            return line
    return None
