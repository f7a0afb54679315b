"""Checks of the rows that a pipeline has written."""

from typing import TYPE_CHECKING

from kaflow_engine.api.lazy import lazily

if TYPE_CHECKING:
    from kaflow_engine.checks.results import CheckResult
    from kaflow_engine.runtime.output_checks import Checked, check_output
else:
    __getattr__ = lazily(__name__)

__all__ = ["CheckResult", "Checked", "check_output"]
