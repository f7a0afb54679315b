"""The operator that runs a `kaflow` command as a task of Airflow."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, assert_never, cast

from airflow.sdk import BaseOperator, Context
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowSkipException,
)

from kaflow_engine.airflow.arguments import (
    checked_arguments,
    checked_environment,
    checked_exit_codes,
    checked_folder,
)
from kaflow_engine.airflow.endings import Ending, ending_of, stopped_early, summary_lines
from kaflow_engine.airflow.kaflow_process import Command, CommandResult, program
from kaflow_engine.errors import ModelError

_WITH_SUMMARY = ("run", "backfill")


class KaflowOperator(BaseOperator):
    """Runs a `kaflow` command and passes its lines on to the log of the task.

    What its exit code calls for: what may heal fails as long as the task has retries left, what
    cannot fails at once. With `--json` the task returns what the command found; `run` and
    `backfill` always do.
    """

    template_fields: Sequence[str] = ("arguments", "project", "environment", "kaflow")
    ui_color = "#e3f1e9"

    def __init__(
        self,
        *,
        arguments: Sequence[str],
        project: str,
        environment: Mapping[str, str] | None = None,
        exit_codes: Mapping[int, Ending] | None = None,
        kaflow: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Take what to run; nothing is looked for before the task runs.

        Args:
            arguments: What would be typed behind `kaflow`, a text for each word.
            project: The folder where it runs, which has `kaflow.yaml`.
            environment: Variables beside those of the worker.
            exit_codes: `retry`, `fail` or `skip` for codes where the default is another one.
            kaflow: The program; default: that of this Python's environment, else of the path.
            kwargs: Whatever all operators take.

        Raises:
            ModelError: One of them is wrong.
        """
        super().__init__(**kwargs)
        self.arguments = checked_arguments(arguments)
        self.project = checked_folder(project)
        self.environment = checked_environment({} if environment is None else environment)
        self.exit_codes = checked_exit_codes({} if exit_codes is None else exit_codes)
        self.kaflow = kaflow
        self._running: Command | None = None
        self._is_asked = False

    def execute(self, context: Context) -> Any:
        """Run the command, and end as its exit code says.

        Raises:
            AirflowSkipException: The author skips its exit code.
            AirflowFailException: Another try would end alike.
            AirflowException: It may heal, or the task was asked to end.
        """
        try:
            words = cast("list[str]", checked_arguments(self.arguments, rendered=True))
            as_json = "--json" in words
            if words[0] in _WITH_SUMMARY and not as_json:
                words, as_json = [*words, "--json"], True
            environment = cast("dict[str, str]", checked_environment(self.environment))
            self._running = Command([program(self.kaflow), *words], Path(self.project), environment)
        except ModelError as error:
            raise AirflowFailException(str(error)) from error
        if self._is_asked:
            self._running.stop()
        ended = self._running.follow(self.log.info, as_json=as_json)
        if self._is_asked:
            raise AirflowException("Airflow ended the task; the next try goes on where it was")
        for line in summary_lines(ended.found) if words[0] in _WITH_SUMMARY else ():
            self.log.info(line)
        self._end(words[0], ended)
        return ended.found

    def on_kill(self) -> None:
        """Ask the command to end: it finishes the batch that runs."""
        self._is_asked = True
        if self._running is not None:
            self._running.stop()

    def _end(self, command: str, ended: CommandResult) -> None:
        said = f"\n{ended.error}" if ended.error else ""
        text = f"'kaflow {command}' ended with exit code {ended.code}{said}"
        ending = ending_of(ended.code, command, self.exit_codes)
        match ending:
            case "success":
                if command in _WITH_SUMMARY and stopped_early(ended.found):
                    raise AirflowException(
                        f"someone stopped 'kaflow {command}' before it was done; the next try "
                        "goes on where it was"
                    )
            case "retry":
                raise AirflowException(text)
            case "fail":
                raise AirflowFailException(text)
            case "skip":
                raise AirflowSkipException(text)
            case _:
                assert_never(ending)
