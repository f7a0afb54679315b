"""Runs cases of case files: plans the pipeline, feeds it batch by batch, compares what came."""

import re
from collections import Counter
from dataclasses import dataclass

from kaflow_engine.errors import KaflowError
from kaflow_engine.flow.records import RECORDS
from kaflow_engine.plan.planner.planned import PlannedPipeline
from kaflow_engine.testing.cases.compare import Difference, Outcome, compare
from kaflow_engine.testing.cases.cuts import GIVEN, CutCase, Cuts, cut
from kaflow_engine.testing.cases.executor import BatchOutcome, Executor
from kaflow_engine.testing.cases.pipeline import Surroundings, plan_case
from kaflow_engine.testing.cases.records import (
    Wire,
    check_outputs,
    check_topics,
    emitted_rows,
    partitions_of,
    records_table,
    wire_of,
    written_letters,
)
from kaflow_engine.testing.cases.specs import Case, Letter, Row


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """What became of a case: it holds, it differs, or it could not be run."""

    case: Case
    cuts: str = "given"
    """The first way to cut it in which it fails; else the last one."""
    runs: int = 0
    """How often it was run."""
    differences: tuple[Difference, ...] = ()
    error: str | None = None
    """Why it could not be run, or which error did not come."""

    @property
    def passed(self) -> bool:
        """Whether it holds."""
        return self.error is None and not self.differences


def run_case(
    case: Case,
    executor: Executor,
    *,
    cuts: Cuts = GIVEN,
    replay: bool = False,
    around: Surroundings | None = None,
) -> CaseResult:
    """Run a case in every way that is asked for, until it fails.

    Args:
        case: What to run.
        executor: Runs the batches.
        cuts: How its records become batches; a case that says `cuts: given` runs so in any case.
        replay: Run every batch twice.
        around: Where pipelines and settings are looked for.
    """
    expected = case.spec.expect_error
    try:
        planned = plan_case(case, around or Surroundings())
        result = _run(case, planned, executor, cuts, replay)
    except KaflowError as error:
        if expected is None:
            return CaseResult(case=case, error=str(error))
        if re.search(expected, str(error)):
            return CaseResult(case=case)
        return CaseResult(case=case, error=f"expected an error like {expected!r}, got\n{error}")
    if expected is not None:
        return CaseResult(case=case, error=f"expected an error like {expected!r}, got none")
    return result


def _run(
    case: Case, planned: PlannedPipeline, executor: Executor, cuts: Cuts, replay: bool
) -> CaseResult:
    wire = wire_of(planned)
    check_topics(wire, case.given)
    check_outputs(wire, case)
    result = CaseResult(case=case)
    for runs, cut_case in enumerate(cut(case, cuts), 1):
        outcome = _feed(case, wire, cut_case, executor, replay)
        found = compare(case, outcome, as_given=cut_case.as_given, keeps_order=executor.keeps_order)
        result = CaseResult(case=case, cuts=cut_case.how, runs=runs, differences=tuple(found))
        if not result.passed:
            break
    return result


def _feed(case: Case, wire: Wire, cut_case: CutCase, executor: Executor, replay: bool) -> Outcome:
    partitions = partitions_of(wire, case.given)
    session = executor.start(wire.planned, partitions, replay, wire.schemas)
    taken = _Taken(wire)
    try:
        for batch in cut_case.batches:
            taken.add(session.run(records_table(wire, batch.records), batch.batch_time))
        time = cut_case.batches[-1].batch_time if cut_case.batches else case.spec.start or 0
        if case.spec.bounded:
            taken.add(session.end(time))
        elif cut_case.batches:
            # Empty: what fell due with the last record; where nothing did, it changes nothing.
            taken.add(session.run(RECORDS.empty_table(), time))
    finally:
        session.close()
    return taken.outcome()


class _Taken:
    """Collects what batches did."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.batches = 0
        self.rows: list[tuple[Row, bytes | None]] = []
        self.letters: list[Letter] = []
        self.counters: Counter[str] = Counter()

    def add(self, batch: BatchOutcome) -> None:
        self.batches += 1
        self.rows += emitted_rows(self.wire, batch.output, self.batches)
        self.letters += written_letters(batch.output)
        self.counters.update(batch.counters)

    def outcome(self) -> Outcome:
        return Outcome(
            outputs=tuple(sink.target for sink in self.wire.planned.plan.sinks),
            rows=tuple(row for row, _ in self.rows),
            raw=tuple(value for _, value in self.rows),
            letters=tuple(self.letters),
            counters=dict(self.counters),
        )
