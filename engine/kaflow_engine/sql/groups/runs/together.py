"""The SQL of a run as SQL over many runs at once, where that makes the same rows."""

from sqlglot import exp

from kaflow_engine.duck.wide.integers import mentions
from kaflow_engine.flow.timed import AT, NUMBER
from kaflow_engine.sql.parse import parse_select
from kaflow_engine.sql.syntax import DIALECT

_WHOLE = (
    *("with_", "distinct", "limit", "offset", "qualify", "windows", "joins", "laterals"),
    *("sample", "pivots", "into", "kind", "connect", "match", "prewhere", "cluster", "sort"),
)
"""Clauses after which rows of several runs would be counted, compared or joined together."""
_INSIDE = (
    *(exp.Subquery, exp.Exists, exp.SetOperation, exp.Window, exp.UDTF, exp.Columns),
    *(exp.Rollup, exp.Cube, exp.GroupingSets),
)


def together(sql: str, batch: str) -> str | None:
    """Return SQL that selects of many runs what `sql` selects of each, with the number of the run.

    The table `batch` then has the rows of all runs in their order, with their run (NUMBER) and
    their place (AT) as two columns more. Rows leave in the order of runs, those of one run as the
    author orders them; where that leaves it open, the one whose first row came first goes first.

    Args:
        sql: One SELECT over `batch`.
        batch: What it calls that table.

    Returns:
        None where only a run by itself makes sure of the same rows.
    """
    tree = parse_select(sql)
    if not isinstance(tree, exp.Select) or mentions(sql) or not _is_plain(tree, batch):
        return None
    select = tree.copy()
    number, place = _column(NUMBER), _column(AT)
    aggregates = select.find(exp.AggFunc) is not None
    group = select.args.get("group")
    if group is not None:
        if not group.args.get("all"):
            group.append("expressions", number)
    elif aggregates:
        if select.args.get("where") or select.args.get("having"):
            return None  # a run of which no row is left has a result as well
        select.set("group", exp.Group(expressions=[number]))
    elif select.args.get("having") or _calls_unknown(select):
        return None
    is_grouped = select.args.get("group") is not None
    select.append("expressions", number.copy())
    order = select.args.get("order")
    first = exp.Min(this=place) if is_grouped else place
    ordered = [exp.Ordered(this=number.copy()), *(order.expressions if order else ())]
    select.set("order", exp.Order(expressions=[*ordered, exp.Ordered(this=first)]))
    return select.sql(dialect=DIALECT)


def _is_plain(tree: exp.Select, batch: str) -> bool:
    """Tell whether a query reads the batch once, and each clause of it can be had for each run."""
    if any(tree.args.get(clause) for clause in _WHOLE) or tree.find(*_INSIDE) is not None:
        return False
    if len(list(tree.find_all(exp.Select))) > 1:
        return False
    tables = list(tree.find_all(exp.Table))
    if len(tables) != 1 or tables[0].name.lower() != batch or _has_more(tables[0]):
        return False
    if any(each.is_star for each in tree.selects):
        return False
    whole = {batch, tables[0].alias.lower()}
    if any(not c.table and c.name.lower() in whole for c in tree.find_all(exp.Column)):
        return False  # a row as a struct
    order = tree.args.get("order")
    ordered = order.expressions if order is not None else ()
    return not any(each.this.name.upper() == "ALL" for each in ordered)


def _has_more(table: exp.Table) -> bool:
    return any(value for name, value in table.args.items() if name not in ("this", "alias"))


def _calls_unknown(tree: exp.Select) -> bool:
    """Tell whether a call may be one of an aggregate, or of something that makes several rows."""
    return tree.find(exp.Anonymous, exp.AnonymousAggFunc) is not None


def _column(name: str) -> exp.Column:
    return exp.column(name, quoted=True)
