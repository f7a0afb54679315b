"""Reads the files of a topic's history with Spark, as if they were ranges of the topic."""

import json
import logging
import re
from collections.abc import Mapping, Sequence
from typing import cast
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from kaflow_engine.errors import SourceError
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.sources import HistoryParams
from kaflow_engine.runtime.failures.failures import DataLost
from kaflow_engine.runtime.source.history import (
    Histories,
    Piece,
    TopicHistory,
    load_histories,
    save_histories,
)
from kaflow_engine.runtime.source.history_rows import RowReader
from kaflow_engine.state.log.batch_log import BatchLog, Offsets

LOGGER = logging.getLogger("kaflow.runtime")
_PATTERN = re.compile(r"[*?\[{]")
_NO_FILES = ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA")


def open_histories(spark: SparkSession, log: BatchLog, plan: Flow) -> Histories:
    """Return the histories of a pipeline's state, those of topics that it begins with looked for.

    Raises:
        SourceError: Files are not what the author says.
    """
    state = log.load_state()
    begun = state.start if state else {}
    known: Histories = load_histories(log.store) if state else {}
    found: dict[str, TopicHistory] = {}
    for topic in plan.sources:
        if topic.history is None or topic.name in known:
            continue
        if topic.name in begun:
            LOGGER.warning(
                "the history of topic '%s' is not read: the state of pipeline '%s' began without "
                "it; a new `id:` starts a state that reads it",
                topic.name,
                plan.name,
            )
        else:
            found[topic.name] = find_history(spark, topic.name, topic.history)
    if found:
        save_histories(log.store, {**known, **found})
    return {**known, **found}


def find_history(spark: SparkSession, topic: str, source: HistoryParams) -> TopicHistory:
    """Look through all files, once, for which records they hold.

    Raises:
        SourceError: There are no files, a column is missing, or records do not say which they are.
    """
    where = f"the history of topic '{topic}' at {source.path}"
    try:
        base, files = _listed(source, where)
        frame = _frame(spark, source, files, base)
        found = frame.inputFiles()
        if not found:
            raise SourceError(f"{where} holds no files", hint="fix history.path, or remove it")
        if len(found) == 1 and unquote(found[0]).endswith(base):
            base = base.rpartition("/")[0]
        reader = RowReader(source, frame.schema)
        reader.check(where)
        pieces = _pieces(frame, reader, where)
    except SourceError:
        raise
    except Exception as error:
        text = str(error)
        if any(name in text for name in _NO_FILES):
            raise SourceError(
                f"{where} holds no {source.format} files", hint="fix history.path, or remove it"
            ) from error
        raise
    history = TopicHistory(
        topic=topic, source=source, base=base, schema=frame.schema.json(), pieces=pieces
    )
    for partition, (start, end) in history.holes:
        LOGGER.warning(
            "%s: no file has offsets %d to %d of partition %d", where, start, end - 1, partition
        )
    return history


def history_frame(
    spark: SparkSession, history: TopicHistory, ranges: Mapping[int, tuple[int, int]]
) -> DataFrame:
    """Return the records (columns of RECORDS) of ranges, each partition in offset order.

    A record that files hold twice comes once.
    """
    files = {
        piece.file
        for piece in history.pieces
        if (found := ranges.get(piece.partition)) and piece.first < found[1] > found[0] < piece.end
    }
    schema = StructType.fromJson(json.loads(history.schema))
    frame = _frame(spark, history.source, sorted(files), history.base, schema)
    reader = RowReader(history.source, schema)
    records = frame.select(*reader.record(history.topic))
    inside = sf.lit(False)
    for partition, (start, end) in ranges.items():
        offset = sf.col("offset")
        inside = inside | ((sf.col("partition") == partition) & (offset >= start) & (offset < end))
    wanted = records.where(inside).dropDuplicates(["partition", "offset"])
    return wanted.repartition(len(ranges), "partition").sortWithinPartitions("partition", "offset")


def check_unchanged(spark: SparkSession, histories: Histories, at: Offsets) -> None:
    """Check that the files which are still to be read are as they were found.

    Args:
        spark: The session.
        histories: What was found.
        at: The next offset of every partition.

    Raises:
        DataLost: A file is gone, or is another one.
    """
    for topic, history in histories.items():
        behind = at.get(topic, {})
        needed = {p.file: p.size for p in history.pieces if p.end > behind.get(p.partition, 0)}
        if needed:
            _check_files(spark, history, needed)


def _check_files(spark: SparkSession, history: TopicHistory, needed: Mapping[str, int]) -> None:
    sizes = _sizes(spark, sorted(needed))
    for file, size in needed.items():
        if sizes.get(file) != size:
            what = "is gone" if file not in sizes else f"has {sizes[file]} bytes, and had {size}"
            raise DataLost(
                f"the history of topic '{history.topic}' has changed: {file} {what}",
                hint="bring the file back; a pipeline with a new `id:` reads what is there now",
            )


def _sizes(spark: SparkSession, files: Sequence[str]) -> dict[str, int]:
    """Return the bytes of those files that exist; one job where all of them do."""
    frame = spark.read.format("binaryFile")
    try:
        found = frame.load([_escaped(file) for file in files])
        rows = found.select(sf.col("_metadata.file_path").alias("file"), "length").collect()
    except Exception as error:
        if "PATH_NOT_FOUND" not in str(error):
            raise
        if len(files) == 1:
            return {}
        half = len(files) // 2
        return {**_sizes(spark, files[:half]), **_sizes(spark, files[half:])}
    return {unquote(row["file"]): row["length"] for row in rows}


def _listed(source: HistoryParams, where: str) -> tuple[str, Sequence[str]]:
    """Return the folder below which folders like day=… are columns, and what to read."""
    if source.format != "delta":
        pattern = _PATTERN.search(source.path)
        base = source.path[: pattern.start()].rpartition("/")[0] if pattern else source.path
        return base, [source.path]
    from deltalake import DeltaTable

    if not DeltaTable.is_deltatable(source.path):
        raise SourceError(f"{where} is no Delta table", hint="fix history.path, or remove it")
    return source.path, cast(Sequence[str], DeltaTable(source.path).file_uris())


def _frame(
    spark: SparkSession,
    source: HistoryParams,
    files: Sequence[str],
    base: str,
    schema: StructType | None = None,
) -> DataFrame:
    reader = spark.read
    if list(files) != [base]:
        reader = reader.option("basePath", base)
    if schema is not None:
        reader = reader.schema(schema)
    if source.format == "json":
        return reader.text(list(files))
    return reader.option("mergeSchema", "true").parquet(*files)


def _pieces(frame: DataFrame, reader: RowReader, where: str) -> tuple[Piece, ...]:
    said = frame.select(
        sf.col("_metadata.file_path").alias("file"),
        sf.col("_metadata.file_size").alias("size"),
        reader.partition.alias("partition"),
        reader.offset.alias("offset"),
        reader.timestamp.alias("timestamp"),
    )
    rows = (
        said.groupBy("file", "size", "partition")
        .agg(
            sf.count("*").alias("records"),
            sf.count("partition").alias("parted"),
            sf.count("offset").alias("placed"),
            sf.count("timestamp").alias("timed"),
            sf.min("offset").alias("first"),
            sf.max("offset").alias("last"),
            sf.min("timestamp").alias("since"),
            sf.max("timestamp").alias("until"),
        )
        .collect()
    )
    pieces: list[Piece] = []
    for row in (row.asDict() for row in rows):
        counts = {
            reader.source.partition: row["records"] - row["parted"],
            reader.source.offset: row["records"] - row["placed"],
            reader.source.timestamp: row["records"] - row["timed"],
        }
        for name, count in counts.items():
            if count:
                raise SourceError(
                    f"{where}: {count} of {row['records']} records of {unquote(row['file'])} have "
                    f"no '{name}'",
                    hint="every record must say its partition, offset and timestamp in the topic",
                )
        pieces.append(
            Piece(
                file=unquote(row["file"]),
                size=row["size"],
                partition=row["partition"],
                first=row["first"],
                end=row["last"] + 1,
                since=row["since"],
                until=row["until"],
            )
        )
    if not pieces:
        raise SourceError(f"{where} holds no records", hint="fix history.path, or remove it")
    return tuple(sorted(pieces, key=lambda piece: (piece.partition, piece.first, piece.file)))


def _escaped(file: str) -> str:
    """Return a path that a reader of files takes as it is, and not as a pattern."""
    return "".join(f"\\{sign}" if sign in "*?[]{}" else sign for sign in file)
