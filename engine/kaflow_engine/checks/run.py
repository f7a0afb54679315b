"""Runs checks over rows, in a process of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from tempfile import TemporaryDirectory

import duckdb
import pyarrow as pa

from kaflow_engine.checks.results import CheckResult, results_of
from kaflow_engine.duck.queries import query
from kaflow_engine.errors import RunError
from kaflow_engine.model.checks import CONDITION, Check
from kaflow_engine.sql.types.conditions import runnable

_QUIET = {"GX_ANALYTICS_ENABLED": "false", "TQDM_DISABLE": "1", "PYTHONUTF8": "1"}
_OF_PYTHON = ("PYTHONHOME", "PYTHONPATH", "LD_LIBRARY_PATH")
"""What a Python may need to start; the process gets no other variable, so no secret."""


def run_checks(checks: Sequence[Check], rows: pa.Table) -> tuple[CheckResult, ...]:
    """Run checks over rows, each over those that meet its condition.

    Importing great-expectations takes ten seconds of a processor and 300 MiB, which go with the
    process.

    Raises:
        RunError: The process failed.
    """
    looked: dict[str | None, pa.Table | str] = {}
    for check in checks:
        if check.condition not in looked:
            looked[check.condition] = _that_meet(check.condition, rows)
    tables = {each: table for each, table in looked.items() if not isinstance(table, str)}
    found = iter(_run([check for check in checks if check.condition in tables], tables))
    return tuple(
        CheckResult(check=check, passed=False, rows=0, error=why)
        if isinstance(why := looked[check.condition], str)
        else next(found)
        for check in checks
    )


def _that_meet(condition: str | None, rows: pa.Table) -> pa.Table | str:
    """Return the rows that meet a condition, or why there are none."""
    if condition is None:
        return rows
    try:
        return query(f"SELECT * FROM rows WHERE ({runnable(condition)}\n)", rows)
    except duckdb.Error as error:
        return f"cannot apply the {CONDITION} {condition!r}: {str(error).splitlines()[0]}"


def _run(checks: Sequence[Check], tables: Mapping[str | None, pa.Table]) -> tuple[CheckResult, ...]:
    if not checks:
        return ()
    numbers = {condition: number for number, condition in enumerate(tables)}
    request = {
        "frames": len(tables),
        "checks": [
            {
                "rows": numbers[check.condition],
                "expectation": check.expectation,
                "arguments": {n: v for n, v in check.arguments.items() if n != CONDITION},
            }
            for check in checks
        ],
    }
    data = pa.BufferOutputStream()
    data.write(json.dumps(request, default=str).encode() + b"\n")
    for table in tables.values():
        with pa.ipc.new_stream(data, table.schema) as writer:
            writer.write_table(table)
    with TemporaryDirectory(prefix="kaflow-checks-") as home:
        kept = {name: os.environ[name] for name in _OF_PYTHON if name in os.environ}
        done = subprocess.run(
            [sys.executable, "-m", "kaflow_engine.checks.child"],
            input=data.getvalue(),
            capture_output=True,
            env={**kept, **_QUIET, "HOME": home},
            cwd=home,
            check=False,
        )
    if done.returncode != 0:
        words = done.stderr.decode(errors="replace").strip().splitlines()
        raise RunError(f"the checks could not run: {words[-1] if words else done.returncode}")
    rows = [tables[check.condition].num_rows for check in checks]
    return results_of(checks, json.loads(done.stdout), rows)
