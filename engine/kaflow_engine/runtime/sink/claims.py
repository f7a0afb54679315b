"""No run commits a batch after another one has begun, whatever its pipeline writes to."""

from dataclasses import dataclass

from kaflow_engine.connectors.kafka.run_log.control import ControlTopic
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import output_table
from kaflow_engine.operators.rows.reports import BatchReport
from kaflow_engine.state.log.batch_log import BatchRecord
from kaflow_engine.state.log.mark import batch_mark


@dataclass(frozen=True, slots=True)
class Claims:
    """Asks the brokers, before a batch is committed, whether this run is still the newest."""

    control: ControlTopic
    transactional: bool
    """Whether transactions of tasks, which a newer run aborts, say what was delivered."""
    at_once: bool
    """Whether every reader sees what tasks write as soon as they write it."""

    @staticmethod
    def of(control: ControlTopic, plan: Flow) -> "Claims":
        """Return what the plan needs; a backfill into a table adds nothing before its end."""
        adds = output_table(plan) is not None and plan.backfill is None
        exactly_once = plan.delivery == "exactly_once"
        return Claims(control, transactional=exactly_once and not adds, at_once=not exactly_once)

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
