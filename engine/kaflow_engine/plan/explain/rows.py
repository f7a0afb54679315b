"""What stands in the boxes of a drawing: pairs of what a line is about, and what it says."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kaflow_engine.model.columns import Column
from kaflow_engine.model.durations import format_duration
from kaflow_engine.model.record_columns import HIDDEN_KEY, KEY
from kaflow_engine.plan.explain.explanation import (
    BranchPart,
    ChainPart,
    Explanation,
    LineagePart,
    OutputPart,
    StepPart,
)
from kaflow_engine.plan.explain.groups import group_rows, taken_rows

NOT_KNOWN = "not known yet"

ON_EXPIRY = {
    "drop": "dropped and counted",
    "emit": "emitted as it is, save where an INNER side has no match",
    "dead_letter": "sent to the dead letters",
}

Rows = Iterator[tuple[str, str]]


def reading(chain: ChainPart) -> Rows:
    """What makes the rows of a chain."""
    if chain.of_rows:
        meets = "looks up what is there" if chain.wait is None else "meets events that are joined"
        yield "drives", f"{chain.driving}: each of its rows {meets}"
        yield from _delay(chain)
        return
    yield "drives", f"{chain.driving}: each of its records makes rows"
    yield from _delay(chain)
    for condition in chain.filters:
        yield "WHERE", f"{condition} (first: what does not pass never waits)"


def _delay(chain: ChainPart) -> Rows:
    if chain.delay:
        text = f"the watermark of joins is {format_duration(chain.delay)} behind that of the topics"
        yield "delay", text


def step_rows(explanation: Explanation, chain: ChainPart, step: StepPart) -> Rows:
    """The joins over one key, and what rows wait for there."""
    for side in step.sides:
        what = f"{side.topic} {side.alias} ({side.role})" if side.topic else "groups, looked up"
        what = f"{side.alias} ({side.role})" if side.events and not side.topic else what
        what = what if side.asks is None else f"dynamic table {side.asks}, looked up"
        yield f"{side.kind} JOIN", what
        yield "  on", " AND ".join(side.on)
        if side.several:
            yield "  finds", "all rows with that key, in the order of their own keys"
        if side.before:
            yield "  sees", "what was there before the record that looks it up"
        for condition in side.filter:
            yield "  only", condition
        if side.within is not None:
            before, after = (format_duration(each) for each in side.within)
            yield "  within", f"{before} before the time of {chain.driving} to {after} after it"
    wait = format_duration(chain.wait or 0)
    match chain.emission:
        case "final":
            yield "waits", f"every row, until the watermark is {wait} past its record"
        case "smart" if step.inner or step.require:
            needs = [f"a match of {alias}" for alias in step.inner]
            needs += [f"{column} not NULL" for column in step.require]
            yield "waits", f"for {', '.join(needs)}; at most {wait}"
        case "smart":
            known = all(output.columns is not None for output in explanation.outputs)
            yield "waits", "for nothing" if known else f"for required columns; at most {wait}"
        case "on_match" if step.unmatched:
            needs = ", ".join((*step.inner, *step.unmatched))
            yield "waits", f"for a match of {needs}; without one, until its time is up"
        case _ if step.inner and chain.wait is None:
            yield (
                "waits",
                f"for nothing: without a match of {', '.join(step.inner)} a row is filtered",
            )
        case _ if step.inner:
            yield "waits", f"for a match of {', '.join(step.inner)}; at most {wait}"
        case _:
            yield "waits", "for nothing: what does not match yet is NULL"
    if any(side.events for side in step.sides) and chain.emission != "final":
        yield "later", "a match that comes after the row left makes one more row"


def order_text(explanation: Explanation, output: OutputPart) -> str:
    """Say in which order the rows of an output leave."""
    if output.every is not None:
        return "by their key, so that those of a key are held back, and leave, in order"
    if output.last_exchange and output.key is not None:
        return f"by {output.key}, so that the rows of a key leave in order"
    first = [branch.gathered[0] for branch in output.branches if branch.gathered]
    if first and not any(group.travels for group in first):
        return "in the same task: the rows of a group have one join key"
    if first:
        return "by what it groups by, so that the rows of a group leave in order"
    return "in the order of the records" if explanation.ordered else "in any order"


def selecting(branch: BranchPart) -> Rows:
    """What a SELECT does with finished rows."""
    for lists in branch.unnests:
        yield "unnest", f"{lists}: a row for each element, in the order of the list"
    yield from conditions(branch.where)
    for group in branch.groups:
        yield from group_rows(group)


def taken(branch: BranchPart) -> Rows:
    """What happens to rows of a union until the group that takes those of all branches."""
    yield from selecting(replace(branch, groups=branch.groups[:-1]))
    yield from taken_rows(branch.groups[-1])


def looked_up(branch: BranchPart) -> Rows:
    """What a chain does with rows that others look up."""
    yield from selecting(branch)
    if not branch.groups:
        yield "found", "by the columns that the join compares"


def looking_up(branch: BranchPart) -> Rows:
    """What a chain does with rows that leave once and are joined."""
    yield from selecting(branch)
    yield "joined", "as rows of their own, when they leave"


def conditions(where: Sequence[str]) -> Rows:
    """What rows must fulfil."""
    for condition in where:
        yield "WHERE", condition


def finished(explanation: Explanation, chain: ChainPart) -> Rows:
    """When rows leave a chain."""
    if chain.tables:
        yield "leaves", "a change, when the row is another one; a delete, when it is gone"
        return
    if not _only_groups(explanation, chain):
        yield "emission", _emission(chain)
    elif chain.steps:
        yield "grouped", _emission(chain)
    if chain.latest:
        yield "time", "the greatest of the events that a row is made of"
    if chain.emission == "smart":
        yield "expiry", f"an incomplete row is {ON_EXPIRY[chain.on_expiry]}"
    if explanation.on_dimension_update == "reemit":
        yield "updates", "a changed dimension emits the rows of unexpired records again"


def written(output: OutputPart) -> Rows:
    """Where the rows of an output go."""
    if into := output.table:
        yield "place", into.path
        grouped = any(branch.gathered for branch in output.branches)
        time = "the starts of windows" if grouped else "event time"
        yield "format", f"Delta, a partition for each {into.partition} of {time} (UTC)"
        yield "commits", f"one a batch, every {format_duration(into.interval)}"
    elif into := output.sink:
        yield "key", _key(output) if output.key else "none"
        yield "sink", into.kind
        yield from into.settings
        if into.changes:
            yield "rows", "replaced and deleted by their key"
    else:
        yield "key", _key(output)
        if output.headers is not None:
            yield "headers", output.headers
        yield "format", output.format
    if output.every is not None:
        wait = format_duration(output.every)
        yield (
            "every",
            f"{wait} of batch time: a key sends one change, and holds the next ones",
        )
    yield "columns", columns_text(output.columns)
    yield "delivery", output.guarantee
    for seen_by in output.side_outputs:
        yield "seen by", f"{seen_by}: at least once, before rows leave"


def _key(output: OutputPart) -> str:
    written = f", as {output.key_format}" if output.key_format else ""
    if output.key in (KEY, HIDDEN_KEY) and any(branch.gathered for branch in output.branches):
        return f"the group{written}"
    return f"{output.key}{written}" if output.key else "none: records go to any partition"


def around(explanation: Explanation) -> Rows:
    """What holds for the whole pipeline."""
    yield "errors", _dead_letters(explanation)
    chosen = "partitions: one for each core, at most 4"
    count = f"{explanation.partitions} partitions" if explanation.partitions else chosen
    yield "state", f"{count}; fixed when the state is created"


def lineage_text(lineage: Sequence[LineagePart]) -> str:
    """Say where columns come from."""
    if not lineage:
        return NOT_KNOWN
    return "; ".join(
        f"{part.column} from {', '.join(f'{t}.{c}' for t, c in part.sources) or 'no column'}"
        for part in lineage
    )


def _only_groups(explanation: Explanation, chain: ChainPart) -> bool:
    """Tell whether all rows of a chain are grouped: groups say themselves when they leave."""
    place = explanation.chains.index(chain)
    fed = [b for output in explanation.outputs for b in output.branches if b.chain == place]
    return bool(fed) and all(branch.gathered for branch in fed)


def _emission(chain: ChainPart) -> str:
    wait = format_duration(chain.wait or 0)
    match chain.emission:
        case "smart":
            return (
                f"smart: when {', '.join(chain.require) or 'nothing'} "
                f"{'is' if len(chain.require) == 1 else 'are'} not NULL; at most {wait} later"
            )
        case "on_match" if any(step.unmatched for step in chain.steps):
            return (
                "on_match: when events match; a row without a match, when the watermark is "
                f"{wait} past its record"
            )
        case "on_match":
            return "on_match: when events match"
        case "final":
            return f"final: once for each record, when the watermark is {wait} past it"
        case _ if chain.of_rows and chain.wait is None:
            return "immediate: as soon as they come, with what is there"
        case _ if chain.wait is None:
            return "immediate: as soon as a record is read, where all that it must find is there"
        case _ if inner := [side for step in chain.steps for side in step.inner]:
            read = "they come" if chain.of_rows else "a record is read"
            return f"immediate: as soon as {read}, and {' and '.join(inner)} matched"
        case _:
            return f"immediate: as soon as {'they come' if chain.of_rows else 'a record is read'}"


def _dead_letters(explanation: Explanation) -> str:
    budgets = [
        *([f"{explanation.max_count} of them"] if explanation.max_count else []),
        *([f"a rate of {explanation.max_rate:g}"] if explanation.max_rate else []),
    ]
    stops = f"; stops beyond {' or '.join(budgets)}" if budgets else ""
    apart = explanation.letters_apart or "files beside the state"
    return f"dead letters go to {explanation.dead_letters or apart}{stops}"


def columns_text(columns: tuple[Column, ...] | None) -> str:
    """Return columns with their types."""
    if columns is None:
        return NOT_KNOWN
    return ", ".join(f"{column.name} {column.type}" for column in columns) or "none"
