"""The oracle agrees with the acceptance cases, wherever it can be told about them."""

# pyright: basic

from pathlib import Path

import pytest
import yaml

from tests.reference.case import Case, differences, run_case
from tests.reference.unions import NotExpressible

FOLDER = Path(__file__).parents[1] / "engine" / "testing" / "cases"
BEYOND_THE_ORACLE = {
    "a header says what each change does, a delete keeps its row, and its headers stay beside it",
    "changes without a table say in a header what they do, one that stops passing deletes with its "
    "row",
    "an output with changes append writes every update and delete as a row, under any key",
    "the key of several columns is their object, in the order of the list, with what is NULL",
    "rows of one key of several columns leave in order, and smart emission waits for each of them",
    "the key of groups, of closed windows, of a table and of changes as a list of its columns",
    "each order with its customer's total before that order, two orders in one batch",
    "lookup before of one query, beside one that sees its own record",
    "the key of the last row of two columns that are not selected, and its _key",
    "the start of a window that changes is a grouping value like others",
    "_key of first rows is what they are the first of",
    "a name after FROM is that of WITH, else a relation, else a topic",
    "groups by aliases, places, ALL, and expressions over calls",
    "where HAVING fails, the last result stays, and one dead letter of a batch names the group",
    "a result that the schema cannot hold stays in its group, and leaves when it fits again",
    "keys keep all digits, and text as JSON writes it",
    "the time of an update is the greatest of all records of its group, and never goes back",
    "windows before 1970, from their origins, of weeks, months and quarters",
    "an unknown operation is a bad record, a null value without a key is left out",
    "many unknown operations of a table, of changes and of what events look up are bad records",
    "a forgotten group is found no more, and one that begins again is",
    "a forgotten group goes out of a join of tables, an output of the groups gets nothing",
    "a forgotten group is taken out of the groups that count it",
    "a forgotten group is a delete among the changes that are rows",
    "the last row of a key gives way to another group when its group is forgotten",
    "rows of files go without a key where an output names none, and with the headers of their "
    "record save ours",
    "changes of a table of files are rows, say in a header what they do, and are seen by records "
    "as they were before",
    "a query may ask for the file of a record",
    "a table of files has the last row of each key",
    "made-up records are counted in windows of their own time",
    "groups of a union beside the groups of one topic, all of both",
    "groups of a union count the rows of both topics, and tell literals of branches apart",
    "branches of one topic, whose rows of one record come in the order of the branches",
    "keys that are one expression in a branch stay two, and HAVING sees both",
    "a window over a union closes when the watermark of the last branch has passed it",
    "the windows of a union close at the end of a bounded run",
    "DISTINCT over a union sends the first row of either topic",
    "the first row of each key of a union",
    "runs over a union, with rows that fail in either topic",
    "windows and events as branches of one output",
    "windows and events without a key that they have in common",
    "distinct rows and all rows of one record, in the order of the branches",
    "a relation that is a union is filtered, and joined to a third table",
    "groups that change are tables, too",
    "changes of a union as rows of their own are grouped",
    "rows of a union of tables are grouped",
    "changes of groups of a union of tables are counted in windows",
    "the last row of each name of a union of tables",
    "closed windows of one topic are counted with the events of another",
    "a union is joined, filtered and grouped in one query",
    "events look up groups of a union",
    "rows that are found are grouped, as each is one",
    "groups that are looked up by a part of what they are grouped by, by what they calculate, and "
    "all of them",
    "the same branch three times counts three times, and a result that stands twice is one",
    "an expression that a derived table names keeps its brackets where the name is used",
    "RA28 runs of 3 rows over 8 records, the last one when its time has come",
    "RA28 the same runs in 2 batches",
    "RA28 a row that fails alone is one dead letter, and its run is made without it",
    "a run that fails as a whole is one dead letter about its result",
    "each source partition makes runs of its own",
    "runs behind windows that close, grouped again, beside the runs themselves",
    "QUALIFY keeps the first row of a key by its order, under every change",
    "a row number that is compared with 1 in the SELECT around, with all columns",
    "the first row in the order of records, of all rows",
    "the best row of a table goes, and the next one takes its place",
    "DISTINCT and then counted in windows of its own event time",
    "a row of DISTINCT that cannot be written is a dead letter about its result, once",
    "a join key that fails takes the record out of both chains, a later failure does not",
    "a query that joins a union, and one over a union in brackets",
    "a branch says by a literal where its rows come from",
    "KS24 a CTE and a derived table",
    "a relation that a join takes as its side, as a derived table would be",
    "structs after CROSS JOIN, in the order of the list whatever their values are",
    "a LATERAL with a condition, and lists of lists",
    "two lists in one SELECT stand side by side, NULL where one is shorter",
    "elements that Avro cannot hold take their record with them",
    "rows of a list have the record columns of their record, or a key of their own",
    "outputs with and without the elements, of one chain",
    "every record column, selected by its name",
    "record columns in WHERE and in expressions, by any spelling, and no part of *",
    "record columns of both sides are kept while an event waits",
    "rows of WITH, derived tables and relations have the record columns of their records",
    "a derived table that is joined has them, too; one with a join has those of its driving record",
    "AS _key below the outermost SELECT is what _key means above, and no part of *",
    "a key that is no text passes as it is, where the query does not read it",
    "a key that a query below has made is that of joined rows, too",
    "rows of a FULL JOIN have the key of the record that makes them",
    "DISTINCT rows have no key, nor have those of a union with a window or of a topic with a _key "
    "of its own",
    "AS _headers below the outermost SELECT is what _headers means above, and no part of *",
    "DISTINCT rows and the first row of a key with headers",
    "headers of groups that change, which are an update where they alone do; a delete has none",
    "a table whose rows change in their headers alone, one update for each key and batch",
    "changes that are held back leave with their headers",
    "changes of rows keep the headers of their records, deletes too",
    "headers that cannot be made are a dead letter",
    "a null value is a row of NULLs under on_null row, at its place and with its Kafka timestamp",
    "a null value is written as one where nothing but * is selected",
    "_key of groups is what they are grouped by, of several columns a STRUCT",
    "a column _key of the value beside the key of groups, of a table and of changes",
    "records of a topic go to the outputs whose WHERE they fulfil",
    "a row that one output cannot take goes to none",
    "each output has the rows of its own query, in its own form",
    "a record that is redriven for one chain is seen by that one only, of no side",
    "what fails in decode, a filter or a key is one dead letter, and counts in each chain",
    "a record on which two chains fail is two dead letters",
    "a window behind a window",
    "a record that is late for its window is a dead letter",
    "the key is a JSON object where the group is NULL, and a column of its own where it is named",
    "RA10 date_trunc of the event time is a tumbling window",
    "RA10 time_bucket of a clock in milliseconds is a tumbling window, weeks begin on Mondays",
    "RA11 functions that keep the values of a group, in the order of the records",
    "RA26 a result that fails is not sent, and the record counts in its group",
    "RA26 one update for a batch, none of whose results fails at its end",
    "a record on which grouping or an argument fails is a dead letter, and in no group",
    "RA15 each order with its customer's running total, which includes that very order",
    "a group that HAVING does not let through is not found",
    "groups of another topic, by two columns, beside a dimension",
    "groups of groups that are looked up are counted",
    "the last row of each key of a relation, one that moves, and one without a key",
    "a null value deletes the last row of its key, where null values are rows and pass as they are",
    "of a table the row that changed last among those with the key",
    "events look up the last row of a key",
    "RA23 change operations are kept where rows are projected",
    "an update that does not pass deletes, an insert is dropped, a condition on the operation "
    "drops",
    "changes with a key of two columns, and null values that name none, as Avro",
    "changes leave as they come, and are counted, of one reading",
    "changes look up a table, groups and a dimension, deletes pass by their key",
    "a dimension stands first, beside a table and beside groups, and events look it up, too",
    "a table is joined to rows of which a topic has the changes, and the newest row per column is "
    "kept",
    "changes of a table on the console, and rows in the blackhole",
    "windows of events beside the table of the same topic, by a common event time",
    "a FULL JOIN by USING shows the key of the side that is there, whatever it is made of",
    "the event side of a derived table is joined by what it computes",
    "under row_time latest the time of the left record is a column like others",
    "customers with the total of their orders",
    "groups with groups, both of events, and those that only one side has",
    "groups that stand first, joined to a table by another column",
    "groups of the same records on both sides, each record once",
    "a result that fails leaves once a late record has made it another one",
    "windows that are open, windows that are closed, and totals",
    "groups that are forgotten beside groups that stay",
    "groups by the start of a window wait for the grace of that window",
    "windows that change are grouped again, because their own query says so",
    "late rows change a window whose query says so, below groups",
    "the time of joined rows in windows, of one query that of the latest event",
    "the time of a group is a value, which each later record changes",
    "the time of groups of a table never goes back, also where a row is taken away",
    "the time of a window that closes is that of its last record, also in windows behind it",
    "the time of distinct rows, and of rows of runs",
    "the time of groups that are looked up, joined and grouped again",
    "the time of joined rows of tables is the later one of both, and of changes that of the record",
    "the time of windows of a union, and of windows and events as its branches",
    "runs over distinct rows and their time",
    "each insert and update of a table is a row, and each delete where it is asked for",
    "the key of changes is that of their row, of several columns a STRUCT",
    "changes are those of what the relation selects, and of the rows that it has",
    "each change of a joined row is a row, also those that one record makes",
    "each change of a group is a row, which is filtered, made distinct and put into windows",
    "changes of a topic as table are counted in windows of its event time, beside the table",
    "a window that takes late rows, and each of its changes as a row",
    "changes beside events in a union, and in runs",
    "changes of the last row of each key, as the last row of each operation again",
    "a change on which a query fails is a dead letter, and a row on which the table fails is gone",
    "the index of a list is the number that the author wrote, whatever the list is made of",
    "numbers in the keys",
    "groups by a number that select their key, too",
    "a table by a number",
    "a table whose key has fields",
    "keys that pass keep their bytes",
    "changes whose keys are Avro records",
    "windows in the keys",
    "sessions in the keys",
    "branches of a union by two event times are counted in common windows",
    "a record that is redriven for one event time is seen by its readings alone",
    "KS25 topics with - and ., EXTRACT, IS DISTINCT FROM, FROM inside a string",
    "a script drops rows, adds a column, and fails on a row",
    "windows over a transform follow the time of its records",
    "groups over a transform, a transform over their changes, and runs behind it",
    "a transform behind a join, behind another transform, with its record columns",
    "a row that fails behind a transform takes its whole record out, also of another output",
    "lists are unnested before a transform, and rows of a record keep their order",
}


def _cases() -> list[Case]:
    return [
        case
        for file in sorted(FOLDER.glob("*.yaml"))
        for case in yaml.load(file.read_text(), yaml.CSafeLoader)
        if "expect_error" not in case and not case["case"].startswith("lenses, ")
    ]


@pytest.mark.parametrize("case", _cases(), ids=lambda case: case["case"])
def test_oracle_agrees_with_case(case: Case) -> None:
    if case["case"] in BEYOND_THE_ORACLE:
        with pytest.raises(NotExpressible):
            run_case(case, FOLDER)
        return
    ran = run_case(case, FOLDER)
    assert differences(case, ran) == []
    counters = ran.counters
    assert counters["read"] == sum(
        counters.get(name, 0)
        for name in ("used", "emitted", "dead_letter", "waiting", "filtered", "expired", "skipped")
    )
