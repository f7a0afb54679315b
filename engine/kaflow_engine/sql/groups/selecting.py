"""What a SELECT makes of its rows: columns, groups, first rows, distinct rows, and runs of rows."""

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.sql.flat import Flat
from kaflow_engine.sql.groups.changes import changes_of, rows_of_changes
from kaflow_engine.sql.groups.distinct import distinct_rows, is_distinct
from kaflow_engine.sql.groups.first_rows import first_rows
from kaflow_engine.sql.groups.grouping import Grouper, is_grouped
from kaflow_engine.sql.groups.runs.runs import rows_of_runs, run_of
from kaflow_engine.sql.groups.windows import ClockOf
from kaflow_engine.sql.scope import Schemas, Scope
from kaflow_engine.sql.streamable import row_number_of
from kaflow_engine.sql.transforms.rows import rows_of_transform, transform_of
from kaflow_engine.sql.unnest import Unnester


@dataclass(frozen=True, kw_only=True)
class Selecting:
    """Reads the select list of a SELECT, with what it makes groups of."""

    at: Location | None
    wrong: list[ModelError]
    readable: Schemas
    clock_of: ClockOf
    """Tells the event time of its rows."""
    typed: Callable[[Flat], Flat]
    """Returns its rows as rows of topics, whose columns have types."""

    def select(self, query: exp.Select, scope: Scope, flat: Flat) -> None:
        """Give rows what is selected of them, and the groups behind which that is.

        Raises:
            ModelError: It cannot be selected, or grouped.
            NeedsSchema: Columns of a topic are needed that are not known yet.
        """
        if is_grouped(query):
            grouper = Grouper(at=self.at, wrong=self.wrong, clock_of=self.clock_of)
            flat.outputs = grouper.selected(query, scope, flat)
        else:
            unnester = Unnester(at=self.at, wrong=self.wrong, flat=flat)
            flat.outputs = unnester.selected(query, scope)
        if row_number_of(query) is not None:
            flat.outputs = first_rows(query, scope, flat, self.readable, self.at)
        if is_distinct(query):
            flat.outputs = distinct_rows(query, flat, self.at)
        if (run := run_of(query)) is not None:
            flat.outputs = rows_of_runs(run, flat, self.typed(flat), self.readable, self.at)
        if (transform := transform_of(query)) is not None:
            flat.outputs = rows_of_transform(transform, flat)
        if (changes := changes_of(query)) is not None:
            flat.outputs = rows_of_changes(changes, query, flat, self.at)


def gathers(query: exp.Select) -> bool:
    """Tell whether a SELECT makes rows of several that it reads."""
    gathered = is_grouped(query) or is_distinct(query) or run_of(query) is not None
    return gathered or row_number_of(query) is not None
