"""`kaflow fakegen`: sample records."""

import json
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path

import click

from kaflow_engine.cli.options import DurationType, PositiveType
from kaflow_engine.cli.stopping import stop_requests
from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.model.configuration.load_config import find_config, load_config
from kaflow_engine.testing.sample.fake import BASE, TOPICS
from kaflow_engine.testing.sample.fake_stream import FakeRecord, FakeStream, fake_records
from kaflow_engine.testing.sample.feed import create_topics, send

_SHARE = click.FloatRange(0, 1)
_WHOLE = click.IntRange(min=1)


class _InstantType(click.ParamType[datetime]):
    name = "time"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        if isinstance(value, datetime):
            return value
        try:
            return datetime.strptime(str(value), "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        except ValueError:
            self.fail(f"'{value}' is not a time; write it as 2026-01-01T00:00:00Z", param, ctx)


@click.command("fakegen", epilog=f"Topics: {', '.join(TOPICS)}.")
@click.option(
    "--topics", default="user_events,user_profiles", show_default=True, help="Comma-separated."
)
@click.option(
    "--rate",
    type=PositiveType(),
    default=100.0,
    show_default=True,
    help="Records per second, all topics together.",
)
@click.option(
    "--duration",
    type=DurationType(),
    metavar="DURATION",
    help="How long, such as 30s or 5m; without it until Ctrl-C.",
)
@click.option("--max-records", type=_WHOLE, help="End after this many records.")
@click.option(
    "--seed", type=int, default=1, show_default=True, help="Equal seeds give equal records."
)
@click.option(
    "--start", type=_InstantType(), help="First timestamp; 2026-01-01T00:00:00Z if not given."
)
@click.option("--live", is_flag=True, help="Let the timestamps begin now.")
@click.option("--fast", is_flag=True, help="Send as fast as possible instead of at --rate.")
@click.option(
    "--entities",
    type=_WHOLE,
    default=100,
    show_default=True,
    help="How many users, devices, products and merchants there are.",
)
@click.option(
    "--late-profiles", type=_SHARE, default=0.0, help="Share of profiles that come after events."
)
@click.option("--broken", type=_SHARE, default=0.0, help="Share of events that cannot be decoded.")
@click.option(
    "--partitions", type=_WHOLE, default=2, show_default=True, help="Of topics that it creates."
)
@click.option("--brokers", help="host:port, comma-separated; default: those of the configuration.")
@click.option(
    "--config", "config_file", type=click.Path(path_type=Path), help="The configuration file."
)
@click.option("--stdout", is_flag=True, help="Print JSON lines instead of sending.")
def command(
    topics: str,
    rate: float,
    duration: int | None,
    max_records: int | None,
    seed: int,
    start: datetime | None,
    live: bool,
    fast: bool,
    entities: int,
    late_profiles: float,
    broken: float,
    partitions: int,
    brokers: str | None,
    config_file: Path | None,
    stdout: bool,
) -> None:
    """Send sample records; the same options give the same bytes, except with --live."""
    if live and start:
        raise click.UsageError("--live and --start exclude each other")
    if fast and not stdout and not (duration or max_records):
        raise click.UsageError("--fast needs an end: give --duration or --max-records")
    begin = int(start.timestamp() * 1000) if start else BASE
    stream = FakeStream(
        topics=tuple(name for name in map(str.strip, topics.split(",")) if name),
        seed=seed,
        rate=rate,
        duration=duration,
        max_records=max_records,
        start=int(time.time() * 1000) if live else begin,
        entities=entities,
        late_profiles=late_profiles,
        broken=broken,
    )
    if stdout:
        _print(fake_records(stream))
        return
    overrides = {"kafka.brokers": brokers} if brokers else None
    kafka = load_config(config_file or find_config(Path.cwd()), overrides=overrides).kafka
    settings = KafkaSettings.configured(kafka)
    records = fake_records(stream)  # an unknown topic is noticed before any is created
    for topic in create_topics(settings, stream.topics, partitions):
        click.echo(f"created topic {topic}", err=True)
    with stop_requests() as asked:
        sent = send(settings, records, since=None if fast else stream.start, stopped=asked.is_set)
    click.echo(f"sent {sent} records to {', '.join(stream.topics)} at {settings.bootstrap}")


def _print(records: Iterable[FakeRecord]) -> None:
    with stop_requests() as asked:
        for record in takewhile(lambda _: not asked.is_set(), records):
            shown = {
                "topic": record.topic,
                "key": record.key.decode(),
                "value": record.value.decode(),
                "timestamp": record.timestamp,
            }
            print(json.dumps(shown))
