"""States that an earlier version has written, put back as they stood: files, table and topics.

What they are and how they were made stands in `tests/fixtures/states/README.md`.
"""

import json
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.client import KafkaSettings, open_producer
from kaflow_engine.connectors.kafka.read import read_all
from kaflow_engine.state.log.batch_log import STATE, plan_mark
from kaflow_engine.state.storage.sealed import seal, unseal

STATES = Path(__file__).parents[1] / "fixtures" / "states"
INPUTS = {"old.events": 2, "old.profiles": 2, "old.payments": 1}
"""Topics that all pipelines read, with their partitions."""
_COMPACTED = {"cleanup.policy": "compact"}
"""What an earlier version said of a pipeline's own topic."""
PIPELINE = "kaflow.pipeline"
"""Header of a dead letter."""

Record = Mapping[str, Any]


class OldStates:
    """What one version has left, unpacked into a folder."""

    def __init__(self, version: str, folder: Path, kafka: KafkaSettings) -> None:
        self.folder, self._kafka = folder, kafka
        with tarfile.open(STATES / f"{version}.tar.xz") as archive:
            archive.extractall(folder, filter="data")
        for directory in (folder / "state").iterdir():
            _move_table(directory, folder / "warehouse")

    @property
    def settings(self) -> tuple[str, ...]:
        """Configuration under which the states are found."""
        brokers = ",".join(self._kafka.brokers)
        path, warehouse = self.folder / "state", self.folder / "warehouse"
        return f"kafka.brokers={brokers}", f"state.rocksdb.path={path}", f"warehouse={warehouse}"

    def pipeline(self, kind: str, name: str) -> Path:
        """Write the file of a pipeline, a `topic` or a `table`, under a name."""
        file = self.folder / f"{name}.yaml"
        file.write_text((STATES / f"{kind}.yaml").read_text().replace("{name}", name))
        return file

    def put_back(self) -> None:
        """Create the topics with what they held when the version ended."""
        written = self._records("written")
        own = {record["topic"] for record in written if record["topic"].startswith("__kaflow.")}
        outputs = {record["topic"] for record in written} - own
        for topic, count in {**INPUTS, **dict.fromkeys(outputs, 2)}.items():
            assert create_topic(self._kafka, topic, count)
        for topic in own:
            assert create_topic(self._kafka, topic, 1, _COMPACTED)
        self._send(self._records("before"))
        self._send(written)

    def send_the_rest(self) -> None:
        """Send the input records that the version has not seen."""
        self._send(self._records("later"))

    def letters(self, name: str) -> list[str]:
        """Return the dead letters of a pipeline, sorted, without what names it or their place."""
        found = read_all(self._kafka, f"{name}.dead").drop_columns(["topic", "partition", "offset"])
        letters = found.to_pylist()
        for letter in letters:
            letter["headers"] = [each for each in letter["headers"] if each["key"] != PIPELINE]
        return _sorted(letters)

    def rows(self, kind: str, name: str) -> list[str]:
        """Return what a pipeline has delivered, sorted."""
        if kind == "table":
            table = DeltaTable(self.folder / "warehouse" / name).to_pyarrow_table()
            kept = [column for column in table.column_names if not column.startswith("_source_")]
            return _sorted(table.select(kept).to_pylist())  # the version did not name the records
        table = read_all(self._kafka, f"{name}.out")
        return _sorted(table.drop_columns(["topic", "offset"]).to_pylist())

    def _records(self, file: str) -> list[Record]:
        lines = (self.folder / f"{file}.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def _send(self, records: Iterable[Record]) -> None:
        producer = open_producer(self._kafka, **{"enable.idempotence": True}).api
        for record in records:
            producer.produce(
                record["topic"],
                record["value"],
                record["key"],
                record["partition"],
                timestamp=record["timestamp"],
                headers=[tuple(header) for header in record["headers"]],
            )
        assert producer.flush(30) == 0


def _sorted(rows: Iterable[Record]) -> list[str]:
    return sorted(json.dumps(row, default=str, sort_keys=True) for row in rows)


def _move_table(directory: Path, warehouse: Path) -> None:
    """Let the plans of a state name the warehouse where it is now."""
    marks: dict[str, str] = {}
    for file in (directory / "plans").iterdir():
        plan = json.loads(file.read_text())
        if plan["finish"]["table"] is None:
            continue
        path = plan["finish"]["table"]["path"]
        text = file.read_text().replace(path, str(warehouse / plan["finish"]["table"]["name"]))
        marks[file.stem] = plan_mark(text)
        file.unlink()
        (file.parent / f"{plan_mark(text)}.json").write_text(text)
    if not marks:
        return
    for file in (directory / STATE, *(directory / "batches").iterdir()):
        members = unseal(file.name, file.read_bytes())
        field = "fingerprint" if file.name == STATE else "plan"
        file.write_bytes(seal({**members, field: marks[members[field]]}))
