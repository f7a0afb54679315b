"""Which rows of an output that is no topic are checked; what checks find is seen elsewhere."""
# pyright: basic

import pytest

from kaflow_engine.checks.results import CheckResult
from kaflow_engine.errors import SinkUnfit
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import load_pipeline
from kaflow_engine.runtime import output_checks
from kaflow_engine.runtime.output_checks import check_output
from tests.engine.connectors.files_here import Files

PIPELINE = """
name: p
query: SELECT id, kind FROM t
output: {type: files, folder: out, format: json, partition_by: [kind]}
checks: [unique: id]
topics: {t: {columns: {id: BIGINT, kind: VARCHAR}}}
"""


@pytest.fixture
def look(tmp_path, monkeypatch):
    """Looks at the output; returns what is said of it, and the rows."""
    seen = []
    monkeypatch.setattr(
        output_checks,
        "run_checks",
        lambda checks, rows: (
            seen.append(rows) or tuple(CheckResult(check=c, passed=True, rows=0) for c in checks)
        ),
    )
    (tmp_path / "p.yaml").write_text(PIPELINE)
    spec = load_pipeline(tmp_path / "p.yaml", {})
    config = Config(warehouse=str(tmp_path))

    def looked(last, **more):
        found = check_output(spec, spec.writes[0], config, last, **more)
        return found.what, sorted(tuple(row.values()) for row in seen.pop().to_pylist())

    return looked


def test_rows_of_files_are_those_that_were_written_lately(tmp_path, look):
    with pytest.raises(SinkUnfit, match="is not there"):
        look(1000)
    files = Files(
        tmp_path, {"id": "BIGINT", "kind": "VARCHAR"}, format="json", partition_by=["kind"]
    )
    files.open().commit(files.batch(1, files.rows("(1, 'a'), (2, 'a/b'), (3, NULL)")))
    hour = 3_600_000
    rows = [(1, "a"), (2, "a/b"), (3, None)]
    assert look(hour) == ("output 'files:out'", rows)
    assert look(-hour) == ("output 'files:out'", [])
    what, some = look(hour, most=2)
    assert (what, len(some)) == ("output 'files:out', 2 of its rows", 2)


def test_rows_that_no_pipeline_of_ours_writes_are_told(tmp_path, look):
    folder = tmp_path / "out" / "kind=a"
    folder.mkdir(parents=True)
    (folder / "x.json").write_text('{"id": "many"}\n')
    with pytest.raises(SinkUnfit, match="cannot have written"):
        look(3_600_000)
