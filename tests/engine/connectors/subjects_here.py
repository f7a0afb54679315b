"""Sinks under the laws of the contract: each begins runs, makes rows, and says what is there."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from deltalake import DeltaTable

from kaflow_engine.connectors.command.outputs import CommandOutlet
from kaflow_engine.connectors.contract import Capabilities, FinishedBatch, Output, Owner, Sink
from kaflow_engine.connectors.delta.outputs import DeltaOutlet
from kaflow_engine.connectors.files.folder import folder_of
from kaflow_engine.connectors.files.outputs import FolderOutlet
from kaflow_engine.connectors.holding import Holding
from kaflow_engine.connectors.http.webhook import Webhooks
from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.connectors.kafka.delivery.deliver import SinkSettings
from kaflow_engine.connectors.kafka.delivery.topic_sink import TopicSink
from kaflow_engine.connectors.kafka.run_log.control import ControlTopic
from kaflow_engine.connectors.local.letters import LocalLetters, local_letters
from kaflow_engine.connectors.local.run_log import LocalRunLog
from kaflow_engine.flow.records import DEAD_LETTER, EVENT_TIME, OUTPUT, SLOT
from kaflow_engine.model.columns import Column
from kaflow_engine.model.letters import ABOUT, PREFIX
from kaflow_engine.model.outputs.connection_specs import (
    CommandConnection,
    WebhookConnection,
)
from kaflow_engine.testing.sink_laws import OURS, Run, rows_of
from tests.committed import read_committed
from tests.receiver import Receiver

NOW = 1_795_296_000_000


class KafkaSubject:
    last_point = "before_commit"

    def __init__(self, kafka: KafkaSettings, topic: str) -> None:
        self._kafka, self._topic = kafka, topic
        create_topic(kafka, topic, 1)

    def begin(self, owner: Owner = OURS) -> Run:
        run = ControlTopic(self._kafka, self._topic).start_run(owner.state, owner.generation)
        self._held = set(run.holdings)
        settings = SinkSettings(
            kafka=self._kafka,
            pipeline_id=self._topic,
            state_id=owner.state,
            generation=owner.generation,
            sink="out",
            epoch=run.epoch,
            epoch_offset=run.epoch_offset,
            delivered=run.delivered_to("out"),
        )
        sink = TopicSink(settings, max(run.delivered.values(), default=0))
        return Run(sink, sink)

    def rows(self, values: list[int]) -> pa.Table:
        rows = [
            {
                "slot": 0,
                "topic": self._topic,
                "key": b"k",
                "value": b"%d" % n,
                "timestamp": NOW,
                "kind": 0,
            }
            for n in values
        ]
        return pa.Table.from_pylist(rows, schema=OUTPUT)

    def visible(self) -> list[int]:
        return [
            int(value) for value in read_committed(self._kafka, self._topic)["value"].to_pylist()
        ]

    def holdings(self) -> set[Holding]:
        self.begin(Owner(state="another", generation=1))
        return self._held


class LettersSubject:
    last_point = "letters_written"

    def __init__(self, folder: Path, log: LocalRunLog) -> None:
        self._folder, self._log = folder, log

    def begin(self, owner: Owner = OURS) -> Run:
        self._log.start_run(owner.state, owner.generation)
        sink = LocalLetters(folder=self._folder, state=owner.state, generation=owner.generation)
        return Run(sink, _Claiming(sink, self._log))

    def rows(self, values: list[int]) -> pa.Table:
        about = ("p", "t", "0", "7", str(NOW), "sql", "Error", "no", "1")
        headers = [
            {"key": f"{PREFIX}{name}", "value": value.encode()}
            for name, value in zip(ABOUT, about, strict=True)
        ]
        rows = [{"value": b"%d" % n, "headers": headers, "kind": DEAD_LETTER} for n in values]
        return pa.Table.from_pylist(rows, schema=OUTPUT)

    def visible(self) -> list[int]:
        return [int(letter.value or b"") for letter in local_letters(self._folder)]

    def holdings(self) -> set[Holding]:
        return set(self._log.start_run("another", 1).holdings)


@dataclass
class _Claiming:
    """The driver's end, and the claim that comes before each commit."""

    sink: Sink
    log: LocalRunLog

    @property
    def capabilities(self) -> Capabilities:
        return self.sink.capabilities

    def commit(self, batch: FinishedBatch) -> None:
        self.log.claim(batch.number, batch.mark)
        self.sink.commit(batch)

    def delivered(self, batch: int) -> bool:
        return self.sink.delivered(batch)

    def finish(self) -> None:
        self.sink.finish()


class DeltaSubject:
    last_point = "files_written"

    def __init__(self, folder: Path) -> None:
        self._output = Output(name="kept", place=str(folder / "kept"), partition="_day")

    def begin(self, owner: Owner = OURS) -> Run:
        outlet = DeltaOutlet()
        opened = outlet.open(self._output, self.rows([]).schema, owner, None)
        return Run(outlet.task(self._output, owner), opened)

    def rows(self, values: list[int]) -> pa.Table:
        day = datetime.fromtimestamp(NOW / 1000, UTC).strftime("%Y-%m-%d")
        columns = [pa.array(values, pa.int64()), pa.array([day] * len(values), pa.string())]
        return pa.table(columns, ["n", "_day"])

    def visible(self) -> list[int]:
        return DeltaTable(self._output.place).to_pyarrow_table()["n"].to_pylist()

    def holdings(self) -> set[Holding]:
        return set(DeltaOutlet().look(self._output, self.rows([]).schema, OURS))


class FilesSubject:
    last_point = "files_written"

    def __init__(self, folder: Path) -> None:
        self._output = Output(
            name="files:kept",
            place="files:kept",
            columns=(Column("n", "BIGINT"),),
            settings={"folder": "kept", "format": "json"},
            connection={"warehouse": str(folder)},
        )

    def begin(self, owner: Owner = OURS) -> Run:
        outlet, owner = FolderOutlet(), replace(owner, epoch=1)
        opened = outlet.open(self._output, self.rows([]).schema, owner, None)
        return Run(outlet.task(self._output, owner), opened)

    def rows(self, values: list[int]) -> pa.Table:
        return pa.table(
            {
                "n": pa.array(values, pa.int64()),
                SLOT: pa.array([n % 2 for n in values], pa.int32()),
                EVENT_TIME: pa.array([NOW] * len(values), pa.int64()),
            }
        )

    def visible(self) -> list[int]:
        files = sorted(folder_of(self._output).glob("*.json"))
        return [json.loads(line)["n"] for file in files for line in file.read_text().splitlines()]

    def holdings(self) -> set[Holding]:
        return set(FolderOutlet().look(self._output, self.rows([]).schema, OURS))


class CommandSubject:
    last_point = "rows_produced"

    def __init__(self, folder: Path, ledger: str | None) -> None:
        self._file = folder / "shop.duckdb"
        with duckdb.connect(self._file) as shop:
            shop.execute("CREATE TABLE kept (n BIGINT)")
        self._output = Output(
            name="command:rows",
            place="command:rows",
            columns=(Column("n", "BIGINT"),),
            settings={
                "connection": "shop",
                "sql": "INSERT INTO shop.kept SELECT n FROM batch",
                "ledger": ledger,
            },
            connection=CommandConnection(setup=f"ATTACH '{self._file}' AS shop").settings,
        )

    def begin(self, owner: Owner = OURS) -> Run:
        outlet, owner = CommandOutlet(), replace(owner, epoch=1)
        opened = outlet.open(self._output, self.rows([]).schema, owner, None)
        return Run(outlet.task(self._output, owner), opened)

    def rows(self, values: list[int]) -> pa.Table:
        return rows_of(values)

    def visible(self) -> list[int]:
        with duckdb.connect(self._file, read_only=True) as shop:
            return [n for (n,) in shop.execute("FROM kept").fetchall()]

    def holdings(self) -> set[Holding]:
        return set(CommandOutlet().look(self._output, self.rows([]).schema, OURS))


class WebhookSubject:
    last_point = "rows_produced"

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._output = Output(
            name="webhook:rows",
            place="webhook:rows",
            columns=(Column("n", "BIGINT"),),
            settings={"connection": "test", "batch": None},
            connection=WebhookConnection(url=receiver.url).settings,
        )

    def begin(self, owner: Owner = OURS) -> Run:
        outlet = Webhooks().outlet
        assert outlet is not None
        opened = outlet.open(self._output, self.rows([]).schema, owner, None)
        return Run(outlet.task(self._output, owner), opened)

    def rows(self, values: list[int]) -> pa.Table:
        return rows_of(values)

    def visible(self) -> list[int]:
        return [json.loads(request.body)["n"] for request in self._receiver.taken]

    def holdings(self) -> set[Holding]:
        return set()


class MadeUpSubject:
    def __init__(
        self,
        path: Path,
        make: Callable[[Path, Owner], Any],
        last_point: str,
        visible: Callable[[Path], list[int]],
        holdings: Callable[[Path], set[Holding]],
    ) -> None:
        self._path, self._make, self.last_point = path, make, last_point
        self._visible, self._holdings = visible, holdings

    def begin(self, owner: Owner = OURS) -> Run:
        made = self._make(self._path, owner)
        return Run(made, made)

    def rows(self, values: list[int]) -> pa.Table:
        return pa.table({"n": pa.array(values, pa.int64())})

    def visible(self) -> list[int]:
        return self._visible(self._path)

    def holdings(self) -> set[Holding]:
        return self._holdings(self._path)
