"""An explanation drawn in plain text, at most 100 columns wide."""

from kaflow_engine.plan.explain.drawing import arrow, box, table, wrapped
from kaflow_engine.plan.explain.explanation import (
    BranchPart,
    ChainPart,
    Explanation,
    OutputPart,
)
from kaflow_engine.plan.explain.input_rows import topic_rows
from kaflow_engine.plan.explain.rows import (
    around,
    conditions,
    finished,
    lineage_text,
    looked_up,
    looking_up,
    order_text,
    reading,
    selecting,
    step_rows,
    taken,
    written,
)

LEDGER = "by the driving record, to settle what became of its rows"


def draw(explanation: Explanation) -> list[str]:
    """Return the lines of a drawing."""
    lines = [f"{explanation.name}  ({explanation.at})"]
    if explanation.description:
        lines += wrapped(f"  {' '.join(explanation.description.split())}")
    outputs, (chain, *others) = explanation.outputs, explanation.chains
    apart = others or any(len(output.branches) > 1 for output in outputs)
    if apart:
        lines += wrapped(f"  {_shared(explanation)}")
    elif len(outputs) > 1:
        lines += wrapped(
            f"  {len(outputs)} outputs share what is drawn above them: each record is "
            "read, joined and kept once."
        )
    for topic in explanation.topics:
        what = "topic" if topic.source is None else "source"
        lines += box(f"{what} {topic.name}", table(list(topic_rows(topic))))
    if explanation.functions:
        rows = [
            (each.name, f"{each.signature}, version {each.version}, of {each.module}")
            for each in explanation.functions
        ]
        lines += box("Python functions", table(rows))
    if apart:
        lines += _chains(explanation)
    else:
        lines += _chain(explanation, chain)
        lines += _outputs(explanation, chain)
    for notice in explanation.notices:
        lines += wrapped(f"notice: {notice}")
    return lines


def _chain(explanation: Explanation, chain: ChainPart) -> list[str]:
    """Draw what happens to records until they are finished rows."""
    if chain.driving is None:
        lines = arrow("the query reads columns that are not known yet")
    elif chain.tables:
        lines = arrow("decode, event time, order; then by the key of each table")
        for part in chain.tables:
            lines += box(part.title, table(list(part.rows)))
    else:
        lines = arrow("" if chain.of_rows else "decode, event time, order")
        lines += box("read", table(list(reading(chain))))
    for number, step in enumerate(chain.steps, 1):
        lines += arrow(f"by {', '.join(step.key)}")
        lines += box(f"step {number}", table(list(step_rows(explanation, chain, step))))
    return lines


def _outputs(explanation: Explanation, chain: ChainPart) -> list[str]:
    """Draw the output of the only chain; of several, first what they share."""
    if len(explanation.outputs) == 1:
        (output,) = explanation.outputs
        rows = [
            *conditions(chain.where),
            *selecting(output.branches[0]),
            *finished(explanation, chain),
            *written(output),
            *around(explanation),
        ]
        return [*arrow(_last_hop(explanation, chain, output)), *box(_title(output), table(rows))]
    lines = arrow(LEDGER if chain.ledger else "")
    lines += box(
        "all outputs",
        table([*conditions(chain.where), *finished(explanation, chain), *around(explanation)]),
    )
    lines += arrow("to each output whose WHERE is true")
    for output in explanation.outputs:
        lines += box(_title(output), table(_alone(explanation, output)))
    return lines


def _alone(explanation: Explanation, output: OutputPart) -> list[tuple[str, str]]:
    """Return what is said of an output of one SELECT, beside what it shares with others."""
    return [
        *selecting(output.branches[0]),
        *written(output),
        ("lineage", lineage_text(output.lineage)),
        ("order", order_text(explanation, output)),
    ]


def _shared(explanation: Explanation) -> str:
    """Say what the chains of a pipeline share."""
    outputs, chains = len(explanation.outputs), len(explanation.chains)
    return (
        f"{_counted(outputs, 'output')} of {_counted(chains, 'chain')}: each topic is read and "
        "decoded once, and each chain joins and keeps records for itself."
    )


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _chains(explanation: Explanation) -> list[str]:
    """Draw chain by chain what feeds the outputs, then unions, then what holds for all."""
    lines: list[str] = []
    for place, chain in enumerate(explanation.chains):
        names = ", ".join(chain.topics)
        if len(explanation.chains) > 1:
            count = f"{place + 1} of {len(explanation.chains)}"
            lines += wrapped(f"chain {chain.name} ({count}): {names}")
        lines += _chain(explanation, chain)
        lines += arrow(LEDGER if chain.ledger else "")
        rows = [*conditions(chain.where), *finished(explanation, chain)]
        lines += box("rows", table(rows))
        fed = [
            (output, number, branch)
            for output in explanation.outputs
            for number, branch in enumerate(output.branches, 1)
            if branch.chain == place
        ]
        lines += arrow("to each WHERE that is true" if len(fed) > 1 else "")
        for output, number, branch in fed:
            lines += _fed(explanation, output, number, branch)
        for output in explanation.outputs:
            for branch in output.looked_up:
                if branch.chain == place:
                    lines += box(f"looked up for {_title(output)}", table([*looked_up(branch)]))
            for branch in output.looking_up:
                if branch.chain == place:
                    lines += box(f"rows for {_title(output)}", table([*looking_up(branch)]))
            for branch in output.gathered:
                if branch.chain == place:
                    title = f"in a UNION ALL for {_title(output)}"
                    lines += box(title, table(list(taken(branch))))
    for output in explanation.outputs:
        if len(output.branches) > 1:
            lines += _union(explanation, output)
    return [*lines, *box("all chains", table(list(around(explanation))))]


def _fed(
    explanation: Explanation, output: OutputPart, number: int, branch: BranchPart
) -> list[str]:
    """Draw an output below its chain, or that branch of its union."""
    if len(output.branches) == 1:
        return box(_title(output), table(_alone(explanation, output)))
    rows = [*selecting(branch), ("lineage", lineage_text(branch.lineage))]
    return box(f"branch {number} of {_title(output)}", table(rows))


def _union(explanation: Explanation, output: OutputPart) -> list[str]:
    """Draw an output behind the branches of its union."""
    rows = [*written(output), ("order", order_text(explanation, output))]
    count = len(output.branches)
    return [
        *arrow(f"the rows of {count} branches; those of one record in the order of the branches"),
        *box(_title(output), table(rows)),
    ]


def _title(output: OutputPart) -> str:
    return f"table {output.table.name}" if output.table else f"output {output.target}"


def _last_hop(explanation: Explanation, chain: ChainPart, output: OutputPart) -> str:
    if chain.ledger:
        return f"{LEDGER}; then by the output key"
    return order_text(explanation, output)
