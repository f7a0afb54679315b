"""SQL of a pipeline reaches nothing but its topics: refused when read, and walled in when run."""

from pathlib import Path

import duckdb
import pytest

from kaflow_engine.duck import binding as binding
from kaflow_engine.duck import queries as running
from kaflow_engine.errors import ModelError
from kaflow_engine.model.pipelines.loader import load_pipeline
from kaflow_engine.plan.planner.pipeline_plan import check_pipeline

FILES = """
read_csv read_csv_auto read_parquet parquet_scan read_json read_json_auto read_json_objects
read_ndjson read_ndjson_objects read_text read_blob read_duckdb read_xlsx sniff_csv glob
parquet_metadata parquet_schema parquet_file_metadata parquet_kv_metadata
sqlite_scan sqlite_attach postgres_scan postgres_attach postgres_query mysql_scan
iceberg_scan delta_scan st_read_scan
""".split()
INSIDES = """
query query_table which_secret duckdb_secrets duckdb_settings duckdb_tables duckdb_logs
pragma_database_size enable_logging disable_logging enable_profiling checkpoint force_checkpoint
json_execute_serialized_sql arrow_scan pandas_scan seq_scan truncate_duckdb_logs
""".split()
SCALARS = ["getenv", "write_log", "sleep_ms", "pg_sleep", "read_text", "glob"]
REPLAYED = """
getvariable current_setting current_query current_connection_id current_transaction_id
pg_postmaster_start_time nextval setseed random uuid stats ago current_localtime age version
""".split()
STATEMENTS = [
    "COPY t TO '/tmp/x.csv'",
    "COPY (SELECT id FROM t) TO '/tmp/x.csv'",
    "ATTACH '/tmp/x.db'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET threads = 4",
    "RESET threads",
    "PRAGMA database_list",
    "CALL pragma_version()",
    "USE other",
    "EXPORT DATABASE 'x'",
    "IMPORT DATABASE 'x'",
    "CREATE SECRET (TYPE s3)",
    "CREATE TABLE x AS SELECT id FROM t",
    "EXPLAIN ANALYZE SELECT id FROM t",
    "SUMMARIZE t",
    "SELECT id FROM t; DROP TABLE t",
]
INSIDE_EXPRESSIONS = [
    "ARRAY(SELECT content FROM x)",
    "ARRAY(SELECT content FROM x UNION SELECT 1)",
    "array_to_string(ARRAY(SELECT content FROM x), '')",
    "(SELECT content FROM x)",
    "(FROM x)",
    "EXISTS (FROM x)",
    "t.id IN (SELECT content FROM x)",
    "t.id = ANY(SELECT content FROM x)",
    "list_transform([1], n -> (SELECT 1))",
    "{'a': (SELECT 1)}",
    "COLUMNS('.*')",
]


def refused(sql: str, tmp_path: Path) -> str:
    path = tmp_path / "p.yaml"
    topics = "topics: {t: {columns: {id: VARCHAR, at: TIMESTAMP}}}\n"
    path.write_text(f"name: p\nquery: |\n  {sql}\noutput: {{topic: o, key: id}}\n{topics}")
    with pytest.raises(ModelError) as caught:
        check_pipeline(load_pipeline(path, {}))
    told = str(caught.value)
    assert told.startswith(f"{path}:3: ")
    return told


@pytest.mark.parametrize("name", [*FILES, *INSIDES])
def test_table_functions_are_refused(name, tmp_path):
    for sql in (
        f"SELECT x.id FROM {name}('/etc/passwd') x",
        f"SELECT t.id FROM t LEFT JOIN {name}('/etc/passwd') x ON t.id = x.id",
        f"SELECT x.id FROM (SELECT * FROM {name}('/etc/passwd')) x",
        f"WITH x AS MATERIALIZED (FROM {name}('/etc/passwd')) SELECT id FROM x",
    ):
        assert f"the function '{name}' reaches out of the pipeline" in refused(sql, tmp_path)


@pytest.mark.parametrize("name", SCALARS)
def test_scalar_functions_are_refused(name, tmp_path):
    for sql in (
        f"SELECT t.id, {name}('/etc/passwd') AS x FROM t",
        f"SELECT t.id FROM t WHERE {name}('/etc/passwd') = 'x'",
        f"SELECT t.id FROM t LEFT JOIN u ON t.id = {name}('/etc/passwd')",
    ):
        assert f"the function '{name}' reaches out of the pipeline" in refused(sql, tmp_path)


@pytest.mark.parametrize("name", REPLAYED)
def test_functions_that_are_not_the_same_twice(name, tmp_path):
    told = refused(f"SELECT t.id, {name}({'t.at' if name == 'age' else ''}) AS x FROM t", tmp_path)
    assert "gives another value when a batch is replayed" in told


@pytest.mark.parametrize("sql", STATEMENTS)
def test_nothing_but_a_select(sql, tmp_path):
    refused(sql, tmp_path)


@pytest.mark.parametrize("part", INSIDE_EXPRESSIONS)
def test_no_query_hides_in_an_expression(part, tmp_path):
    assert "cannot run" in refused(f"SELECT t.id, {part} AS x FROM t", tmp_path)


def test_no_function_of_duckdb_is_forgotten(tmp_path):
    """Whatever has another value each time, by DuckDB's own word, is refused."""
    sql = "SELECT DISTINCT function_name, parameters FROM duckdb_functions() WHERE stability = ?"
    with running.cursor() as connection:
        found = connection.execute(sql, ["VOLATILE"]).fetchall()
    for name, parameters in found:
        if name != "error":  # it makes a record a bad one, every time
            nulls = ", ".join("NULL" for _ in parameters)
            told = refused(f"SELECT t.id, {name}({nulls}) AS x FROM t", tmp_path)
            assert "reaches out" in told or "replayed" in told


WALLED = [
    *(f"SELECT * FROM {name}('/etc/passwd')" for name in FILES),
    "COPY (SELECT 1) TO '/tmp/kaflow-was-here.csv'",
    "ATTACH '/tmp/kaflow-was-here.db'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET threads = 4",
    "SET GLOBAL TimeZone = 'CET'",
    "RESET disabled_filesystems",
    "SET enable_external_access = true",
    "SET disabled_filesystems = ''",
    "SET custom_extension_repository = 'http://127.0.0.1:1'",
    "EXPORT DATABASE '/tmp/kaflow-was-here'",
    "IMPORT DATABASE '/tmp/kaflow-was-here'",
    "SELECT * FROM duckdb_secrets()",
    "SELECT * FROM read_csv('http://127.0.0.1:1/x')",
    "SELECT * FROM read_parquet('s3://bucket/x')",
    "SELECT * FROM read_parquet('hf://datasets/x')",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM '/etc/hosts.csv'",
    "SELECT getenv('HOME')",
]


@pytest.mark.parametrize("door", [running, binding], ids=["running", "binding"])
def test_a_connection_is_walled_in(door):
    with door._database(0).cursor() as connection:
        for sql in WALLED:
            with pytest.raises(duckdb.Error):
                connection.execute(sql).fetchall()
    assert not list(Path("/tmp").glob("kaflow-was-here*"))
