"""Buckets of SQLFlow files: what is copied there, and how they are reached."""
# pyright: basic

from pathlib import Path

import pytest
import yaml

from kaflow_engine.masking import masked
from kaflow_engine.model.config import Config
from kaflow_engine.model.configuration.with_brought import with_brought
from kaflow_engine.model.project import read_project

CLICKS = Path(__file__).parents[3] / "fixtures" / "sqlflow" / "clicks.yml"
ALLOWED = Config.model_validate({"sql": {"attach": ["sqlite"]}})


def lowered(folder, text):
    (folder / "p.yml").write_text(yaml.safe_dump(text, sort_keys=False))
    found = read_project([folder / "p.yml"], ALLOWED, {})
    assert found.mistakes == ()
    return found.pipelines[0].writes, with_brought(ALLOWED, found.pipelines)


@pytest.mark.parametrize(
    ("copy", "settings"),
    [
        ("COPY sqlflow_sink_batch TO 's3://lake/a/$id.parquet' (FORMAT 'parquet')", {}),
        ("COPY (SELECT * FROM sqlflow_sink_batch) TO 's3a://lake/a/day-$id.parquet';", {}),
        ("COPY sqlflow_sink_batch TO 's3://lake/a/$id.csv' (HEADER)", {"format": "csv"}),
        ("COPY sqlflow_sink_batch TO 's3://lake/a/$id' (FORMAT json)", {"format": "json"}),
        (
            "COPY sqlflow_sink_batch TO 's3://lake/a' "
            '(FORMAT parquet, PARTITION_BY ("page", id), OVERWRITE_OR_IGNORE)',
            {"partition_by": "page,id"},
        ),
        ("COPY sqlflow_sink_batch TO 's3://lake/$id.parquet'", {"folder": "s3://lake"}),
    ],
)
def test_copies_are_files(tmp_path, copy, settings):
    substitutions = [{"var": "$id", "type": "uuid4"}]
    command = {"type": "sqlcommand", "sqlcommand": {"sql": copy, "substitutions": substitutions}}
    text = yaml.safe_load(CLICKS.read_text())
    text["pipeline"]["sink"] = command
    ((write,), _) = lowered(tmp_path, text)
    usual = {"folder": "s3://lake/a", "format": "parquet", "partition": None}
    assert write.sink.settings == {**usual, "partition_by": None, "interval": 10_000, **settings}


@pytest.mark.parametrize(
    "commands",
    [
        [
            "INSTALL httpfs; LOAD httpfs; SET s3_region = 'eu-1'; SET s3_endpoint TO 'store:9000'",
            "SET s3_use_ssl = false; SET s3_access_key_id='AKIA1234'; SET s3_url_style='path';"
            "SET GLOBAL s3_secret_access_key = 'hush-hush';",
        ],
        [
            "CREATE OR REPLACE SECRET lake (TYPE s3, PROVIDER config, KEY_ID 'AKIA1234', "
            "SECRET 'hush-hush', REGION 'eu-1', ENDPOINT 'store:9000', USE_SSL false)"
        ],
    ],
)
def test_commands_say_how_buckets_are_reached(tmp_path, commands):
    text = yaml.safe_load(CLICKS.read_text())
    text["commands"] += [{"name": "store", "sql": sql} for sql in commands]
    _, config = lowered(tmp_path, text)
    (spec,) = read_project([tmp_path / "p.yml"], ALLOWED, {}).pipelines
    assert not [line for line in spec.brought.starting if "hush" in line or "AKIA" in line]
    assert spec.brought.starting[-1].startswith("executing command store: ")
    assert spec.brought.ready == "clicks waits for messages of clicks"
    s3 = config.state.rocksdb.checkpoint.s3
    assert (s3.region, s3.endpoint, s3.enabled) == ("eu-1", "http://store:9000", False)
    assert (s3.access_key, s3.secret_key) == ("AKIA1234", "hush-hush")
    assert "hush-hush" not in repr(config)
    assert masked("x", "hush-hush") != "hush-hush"
