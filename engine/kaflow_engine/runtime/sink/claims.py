"""Claims: a driver marker before each commit fences a run that was replaced."""

from dataclasses import dataclass

from kaflow_engine.connectors.contract import Sink
from kaflow_engine.connectors.run_log import RunLog
from kaflow_engine.flow.flow import Flow
from kaflow_engine.operators.rows.reports import BatchReport
from kaflow_engine.runtime.tasks.outputs import promised
from kaflow_engine.state.log.batch_log import BatchRecord
from kaflow_engine.state.log.mark import batch_mark


@dataclass(frozen=True, slots=True)
class Claims:
    """Asks the brokers, before a batch is committed, whether this run is still the newest."""

    control: RunLog
    transactional: bool
    """Whether transactions of tasks, which a newer run aborts, say what was delivered."""
    at_once: bool
    """Whether every reader sees what tasks write as soon as they write it."""

    @staticmethod
    def of(control: RunLog, plan: Flow, letters: Sink | None = None) -> "Claims":
        """Return what the plan needs; a backfill commits nothing before its end.

        Args:
            control: The log of its runs.
            plan: What is to run.
            letters: What takes dead letters, where they leave apart from records.
        """
        committed_by = {promised(sink, plan.delivery).commit for sink in plan.sinks}
        if letters is not None:
            committed_by.add(letters.capabilities.commit)
        adds = "driver" in committed_by and plan.backfill is None
        exactly_once = plan.delivery == "exactly_once"
        on_brokers = plan.dead_letter_topic is not None
        # another cluster may not know of a newer run yet
        in_one = plan.written_clusters <= {plan.cluster}
        transactional = exactly_once and on_brokers and not adds and in_one
        return Claims(control, transactional=transactional, at_once=not exactly_once)

    def begin(self) -> None:
        """Go on to the tasks of a batch, whose rows nothing takes back.

        Raises:
            TakenOver: A newer run has started.
            SinkError: The broker fails.
        """
        if self.at_once:
            self.control.require_newest()

    def claim(self, batch: BatchRecord, report: BatchReport) -> None:
        """Go on with a batch whose tasks are done.

        Raises:
            SinkError: A newer run has started, or the broker fails.
        """
        if not self.transactional:
            self.control.claim(batch.number, batch_mark(batch))
        elif not any(note.get("delivered") or note.get("dead_letters") for note in report.notes):
            self.control.require_newest()
