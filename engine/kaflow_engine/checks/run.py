"""Runs checks over rows, in a process of its own."""
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false
# pyarrow is untyped

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.feather as feather

from kaflow_engine.checks.results import CheckResult, results_of
from kaflow_engine.errors import RunError
from kaflow_engine.model.checks import Check

_QUIET = {"GX_ANALYTICS_ENABLED": "false", "TQDM_DISABLE": "1"}


def run_checks(checks: Sequence[Check], rows: pa.Table) -> tuple[CheckResult, ...]:
    """Run checks over rows.

    Importing great-expectations takes ten seconds of a processor and 300 MiB, which go with the
    process.

    Raises:
        RunError: The process failed.
    """
    if not checks:
        return ()
    with TemporaryDirectory(prefix="kaflow-checks-") as scratch:
        data = Path(scratch) / "rows.arrow"
        feather.write_feather(rows, str(data), compression="uncompressed")
        request = {
            "rows": str(data),
            "checks": [
                {"expectation": check.expectation, "arguments": dict(check.arguments)}
                for check in checks
            ],
        }
        done = subprocess.run(
            [sys.executable, "-m", "kaflow_engine.checks.child"],
            input=json.dumps(request, default=str),
            capture_output=True,
            text=True,
            env={**os.environ, **_QUIET},
            cwd=scratch,
            check=False,
        )
    if done.returncode != 0:
        words = done.stderr.strip().splitlines()
        raise RunError(f"the checks could not run: {words[-1] if words else done.returncode}")
    return results_of(checks, json.loads(done.stdout), rows.num_rows)
