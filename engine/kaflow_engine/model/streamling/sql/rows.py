"""The SQL of a node as the engine reads it: relations by their names, operations as they travel."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kaflow_engine.model.streamling.operations import OPERATION, Rows, computed, facts_of
from kaflow_engine.model.streamling.sql.text import Edit, Select, SqlText, edited


def quoted(name: str) -> str:
    """Return a name as SQL quotes it."""
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """What a query reads under a name."""

    relation: str
    """What it is called in the pipeline."""
    rows: Rows


def lowered_sql(sql: SqlText, inputs: Mapping[str, Input], result: Rows) -> str:
    """Return a query over relations; its lines are those of its author.

    Args:
        sql: As it stands.
        inputs: What it may read, by the names that the file gives.
        result: What comes out of it.
    """
    named = SqlText(edited(sql.text, [*_names(sql, inputs), *_qualifiers(sql, inputs)]))
    known = {each.relation: each for each in inputs.values()}
    if result.kind == "rows":
        return edited(named.text, [*_carried(named, known, result)])
    return edited(named.text, [*_not_carried(named, result)])


def _names(sql: SqlText, inputs: Mapping[str, Input]) -> Iterator[Edit]:
    for named in sql.sources:
        found = inputs.get(named.name)
        if found is None:
            continue
        text = quoted(found.relation)
        if named.called is None and found.relation != named.name:
            text += f" AS {quoted(named.name)}"
        yield Edit(named.start, named.end, text)


def _qualifiers(sql: SqlText, inputs: Mapping[str, Input]) -> Iterator[Edit]:
    """Quote names with dots where they stand before a column."""
    behind_from = {named.start for named in sql.sources}
    place, words = 0, sql.words
    while place < len(words):
        chain = _chain(sql, place)
        parts = [words[each].text for each in chain[::2]]
        if len(parts) > 2 and words[place].start not in behind_from:
            for size in range(len(parts) - 1, 1, -1):
                name = ".".join(parts[:size])
                if name in inputs:
                    yield Edit(words[place].start, words[chain[2 * size - 2]].end, quoted(name))
                    break
        place = max(chain, default=place) + 1


def _chain(sql: SqlText, place: int) -> list[int]:
    """Return the places of a name and what dots tie to it."""
    words, found = sql.words, list[int]()
    while place < len(words) and words[place].is_name:
        found.append(place)
        if place + 2 >= len(words) or words[place + 1].kind != "DOT":
            break
        if not words[place + 2].is_name:
            break
        found.append(place + 1)
        place += 2
    return found


def _not_carried(sql: SqlText, result: Rows) -> Iterator[Edit]:
    """Take `_gs_op` out of what is selected; read elsewhere, it is what the engine knows."""
    instead = "_op" if result.kind == "changes" else "'i'"
    taken: set[int] = set()
    for select in sql.selects:
        items = sql.split(select.items, "COMMA")
        alone = [item for item in items if _is_operation(sql, item)]
        if len(alone) < len(items):
            for item in alone:
                yield _without(sql, items, items.index(item))
                taken.update(item)
    for place, word in enumerate(sql.words):
        if word.text.lower() != OPERATION or place in taken:
            continue
        if instead == "_op":
            yield Edit(word.start, word.end, instead)
        else:
            first = place
            while first >= 2 and sql.words[first - 1].kind == "DOT":
                first -= 2
            yield Edit(sql.words[first].start, word.end, instead)


def _is_operation(sql: SqlText, item: range) -> bool:
    """Tell whether an item is `_gs_op` of the input, and nothing else."""
    words = [sql.words[place] for place in item]
    if len(words) >= 3 and words[-2].kind == "ALIAS" and words[-1].text.lower() == OPERATION:
        words = words[:-2]
    plain = all(word.is_name or word.kind == "DOT" for word in words)
    return plain and bool(words) and words[-1].text.lower() == OPERATION


def _without(sql: SqlText, items: list[range], number: int) -> Edit:
    """Take an item and its comma out; the lines between stay."""
    item = items[number]
    if number:
        comma = sql.words[items[number - 1].stop]
        return Edit(comma.start, sql.words[item.stop - 1].end, _lines(sql, comma.start, item))
    behind = sql.words[item.stop]
    return Edit(sql.words[item.start].start, behind.end, "")


def _lines(sql: SqlText, start: int, item: range) -> str:
    return "\n" * sql.text.count("\n", start, sql.words[item.stop - 1].end)


def _carried(sql: SqlText, inputs: Mapping[str, Input], result: Rows) -> Iterator[Edit]:
    """Let each SELECT have `_gs_op` as a column: its own, or that of what it reads."""
    sets = facts_of(sql).sets
    for select in sql.selects:
        if select.role == "other":
            continue
        reads = [inputs[each.name] for each in select.sources if each.name in inputs]
        given = not select.sources or reads == [] or reads[0].rows.kind == "rows"
        operation = _operation(select) if given else "'i'"
        items = sql.split(select.items, "COMMA")
        yield from _read_as(sql, select, items, operation, given=given)
        stars = [item for item in items if item and sql.words[item.stop - 1].kind == "STAR"]
        alone = [number for number, item in enumerate(items) if _is_operation(sql, item)]
        if computed(sql, select):
            yield from (_star_without(sql, star) for star in stars if given)
            continue
        filtered = None
        if select.role == "top" and given and not sets and result.key:
            filtered = _filtered(sql, select, operation)
        if filtered is not None:
            now, edit = filtered
            yield edit
            yield from (_star_without(sql, star) for star in stars)
            yield from (_without(sql, items, number) for number in alone if len(items) > 1)
            yield _added(sql, select, f"{now} AS {OPERATION}")
        elif not alone and (not stars or not given):
            yield _added(sql, select, operation if given else f"'i' AS {OPERATION}")


def _operation(select: Select) -> str:
    if len(select.sources) < 2:
        return OPERATION
    first = select.sources[0]
    return f"{quoted(first.called or first.name)}.{OPERATION}"


def _read_as(
    sql: SqlText, select: Select, items: list[range], operation: str, *, given: bool
) -> Iterator[Edit]:
    """Say of rows that are all inserts what `_gs_op` is, where a query reads it."""
    if given:
        return
    for item in items:
        if _is_operation(sql, item):
            start, end = sql.words[item.start].start, sql.words[item.stop - 1].end
            yield Edit(start, end, f"{operation} AS {OPERATION}")
    for place in select.where or ():
        if sql.words[place].text.lower() == OPERATION:
            yield Edit(sql.words[place].start, sql.words[place].end, operation)


def _star_without(sql: SqlText, star: range) -> Edit:
    end = sql.words[star.stop - 1].end
    return Edit(end, end, f" EXCLUDE ({OPERATION})")


def _added(sql: SqlText, select: Select, item: str) -> Edit:
    end = sql.words[select.items.stop - 1].end
    return Edit(end, end, f", {item}")


def _filtered(sql: SqlText, select: Select, operation: str) -> tuple[str, Edit] | None:
    """Return what `_gs_op` is behind a filter, and the condition: an update that does not pass
    deletes, and a delete always passes. None: only operations are asked for."""
    if select.where is None:
        return None
    parts = sql.split(select.where, "AND")
    about = [part for part in parts if _asks_operation(sql, part)]
    rest = [part for part in parts if part not in about]
    if not rest or (len(sql.split(select.where, "OR")) > 1 and about):
        return None
    passes = " AND ".join(f"({sql.flat(part)})" for part in rest)
    now = f"CASE WHEN {operation} = 'u' AND ({passes}) IS NOT TRUE THEN 'd' ELSE {operation} END"
    others = "".join(f" AND ({sql.flat(part)})" for part in about)
    written = sql.slice(select.where)
    condition = f"(({written}\n) OR ({operation} <> 'i'{others}))"
    if "\n" not in written and "--" not in written:
        condition = f"(({written}) OR ({operation} <> 'i'{others}))"
    start = sql.words[select.where.start].start
    return now, Edit(start, sql.words[select.where.stop - 1].end, condition)


def _asks_operation(sql: SqlText, part: range) -> bool:
    return any(sql.words[place].text.lower() == OPERATION for place in part)
