"""`kaflow dev`: a broker and a schema registry on this machine, with sample data."""

from contextlib import ExitStack
from pathlib import Path

import click

from kaflow_engine.cli.stopping import stop_requests
from kaflow_engine.errors import RunError
from kaflow_engine.testing.sample.fake_stream import FakeStream, fake_records
from kaflow_engine.testing.sample.feed import create_topics, send
from kaflow_engine.testing.services.broker import Broker
from kaflow_engine.testing.services.registry import SchemaRegistry

_LOOK = 0.5
"""Seconds between two looks at the servers."""


@click.command("dev")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=9092, show_default=True, help="0: any free."
)
@click.option("--registry", "with_registry", is_flag=True, help="Start a schema registry too.")
@click.option(
    "--registry-port",
    type=click.IntRange(0, 65535),
    default=8081,
    show_default=True,
    help="0: any free.",
)
@click.option(
    "--topics",
    default="user_events,user_profiles",
    show_default=True,
    help="Comma-separated; sample records are made for them.",
)
@click.option(
    "--records", type=click.IntRange(min=0), default=1000, show_default=True, help="Sample records."
)
@click.option("--partitions", type=click.IntRange(min=1), default=2, show_default=True)
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep the broker's records in this folder; without it they go at the end.",
)
def command(
    port: int,
    with_registry: bool,
    registry_port: int,
    topics: str,
    records: int,
    partitions: int,
    data: Path | None,
) -> None:
    """Run Kafka on this machine until Ctrl-C, with sample records in it."""
    names = tuple(name for name in map(str.strip, topics.split(",")) if name)
    # an unknown topic is noticed before anything is started
    sample = fake_records(FakeStream(topics=names, max_records=records)) if records else iter(())
    with stop_requests() as asked, ExitStack() as servers:
        click.echo("starting Kafka …", err=True)
        broker = servers.enter_context(Broker(port or None, data.resolve() if data else None))
        registry: SchemaRegistry | None = None
        if with_registry:
            click.echo("starting the schema registry …", err=True)
            registry = servers.enter_context(SchemaRegistry(registry_port or None))
        created = create_topics(broker.settings, names, partitions)
        if len(created) == len(names):  # kept data already has its sample
            send(broker.settings, sample, stopped=asked.is_set)
        click.echo(_next(broker, registry, names))
        while not asked.wait(_LOOK):
            for server in (broker, registry):
                if server and not server.running:
                    raise RunError("a server ended by itself", hint=server.last_words())
        click.echo("stopping …", err=True)


def _next(broker: Broker, registry: SchemaRegistry | None, topics: tuple[str, ...]) -> str:
    return "\n".join(
        [
            f"Kafka            {broker.bootstrap}",
            *([f"schema registry  {registry.url}"] if registry else []),
            f"topics           {', '.join(topics) or 'none'}",
            "",
            "In another terminal:",
            f"  export KAFLOW__KAFKA__BROKERS={broker.bootstrap}",
            *([f"  export KAFLOW__KAFKA__SCHEMAREGISTRY={registry.url}"] if registry else []),
            "  kaflow fakegen --rate 50 --duration 1m --seed 2",
            "  kaflow run PIPELINE.yaml",
            "",
            "Ctrl-C stops everything.",
        ]
    )
