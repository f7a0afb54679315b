"""Types are strict without exceptions in files, and the stubs in `typings/` name what is there."""

import re
from pathlib import Path

import pytest

from tests.stubs import ROOT, stubs_of, wrong_in

STUBS = sorted(set(ROOT.joinpath("typings").rglob("*.pyi")) - {*stubs_of("airflow")})
"""Those of Airflow are compared in its own environment: `engine/airflow/test_dags.py`."""
HEADER = re.compile(r"^\s*#\s*(pyright|mypy):", re.MULTILINE)


def test_no_file_relaxes_types():
    relaxed = [
        str(file.relative_to(ROOT))
        for folder in ("engine", "kaflow_dagster", "bench")
        for file in sorted(ROOT.joinpath(folder).rglob("*.py"))
        if HEADER.search(file.read_text())
    ]
    assert relaxed == []


@pytest.mark.parametrize("stub", STUBS, ids=lambda stub: str(stub.relative_to(ROOT)))
def test_stubs_declare_what_packages_have(stub: Path):
    assert wrong_in(stub) == []
