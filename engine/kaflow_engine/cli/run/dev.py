"""`kaflow dev`: a broker and other servers on this machine, with sample data."""

from collections.abc import Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import click

from kaflow_engine.cli.run.invoke import command as invoke
from kaflow_engine.cli.stopping import stop_requests
from kaflow_engine.errors import ModelError, RunError, UnknownName
from kaflow_engine.extras import EXTRAS
from kaflow_engine.testing.sample.fake_stream import FakeStream, fake_records
from kaflow_engine.testing.sample.feed import create_topics, send
from kaflow_engine.testing.sample.users import DATABASE, TABLE, create_users
from kaflow_engine.testing.services.broker import Broker
from kaflow_engine.testing.services.postgres import PostgresServer
from kaflow_engine.testing.services.registry import SchemaRegistry

_LOOK = 0.5
"""Seconds between two looks at the servers."""
_WITH = ("postgres", "registry")
_ELSEWHERE = {
    "clickhouse": (
        "there is no package of a ClickHouse server that could be started here",
        "run docker compose --file deploy/compose.yaml --profile clickhouse up clickhouse, or a "
        "server of your own, and export KAFLOW__CLICKHOUSE__CONNECTIONS__DEFAULT__URL="
        "http://kaflow:kaflow@127.0.0.1:8123",
    ),
}
"""Servers that are not started, why, and what to do instead."""


@click.group("dev", invoke_without_command=True)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=9092, show_default=True, help="0: any free."
)
@click.option(
    "--with",
    "others",
    default="",
    metavar="NAMES",
    help=f"Start other servers too, comma-separated: {', '.join(_WITH)}.",
)
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
@click.pass_context
def command(
    context: click.Context,
    port: int,
    others: str,
    registry_port: int,
    topics: str,
    records: int,
    partitions: int,
    data: Path | None,
) -> None:
    """Run Kafka on this machine until Ctrl-C, with sample records in it."""
    if context.invoked_subcommand is not None:
        return
    names, wanted = _listed(topics), _listed(others)
    _check(wanted)
    # an unknown topic is noticed before anything is started
    sample = fake_records(FakeStream(topics=names, max_records=records)) if records else iter(())
    with stop_requests() as asked, ExitStack() as servers:
        click.echo("starting Kafka …", err=True)
        broker = servers.enter_context(Broker(port or None, data.resolve() if data else None))
        registry: SchemaRegistry | None = None
        if "registry" in wanted:
            click.echo("starting the schema registry …", err=True)
            registry = servers.enter_context(SchemaRegistry(registry_port or None))
        postgres: PostgresServer | None = None
        if "postgres" in wanted:
            click.echo("starting PostgreSQL …", err=True)
            postgres = servers.enter_context(PostgresServer())
            create_users(postgres.url, postgres.url_in(DATABASE))
        created = create_topics(broker.settings, names, partitions)
        if len(created) == len(names):  # kept data already has its sample
            send(broker.settings, sample, stopped=asked.is_set)
        click.echo(_next(broker, registry, postgres, names))
        while not asked.wait(_LOOK):
            for server in (broker, registry, postgres):
                if server and not server.running:
                    raise RunError("a server ended by itself", hint=server.last_words())
        click.echo("stopping …", err=True)


command.add_command(invoke)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(name for name in map(str.strip, text.split(",")) if name)


def _check(wanted: Sequence[str]) -> None:
    """Look whether servers can be started, before one is.

    Raises:
        UnknownName: There is no such server.
        ModelError: A package is missing, or a server is not for this command to start.
    """
    for name in wanted:
        if name in _ELSEWHERE:
            why, instead = _ELSEWHERE[name]
            raise ModelError(why, hint=instead)
        if name not in _WITH:
            raise UnknownName("server", name, _WITH)
    if "postgres" in wanted and find_spec("psycopg") is None:
        raise ModelError("the driver of PostgreSQL is missing", hint=EXTRAS["postgres"].install)


def _next(
    broker: Broker,
    registry: SchemaRegistry | None,
    postgres: PostgresServer | None,
    topics: tuple[str, ...],
) -> str:
    database = postgres.url_in(DATABASE) if postgres else ""
    return "\n".join(
        [
            f"Kafka            {broker.bootstrap}",
            *([f"schema registry  {registry.url}"] if registry else []),
            *([f"PostgreSQL       {database}", f"table            {TABLE}"] if postgres else []),
            f"topics           {', '.join(topics) or 'none'}",
            "",
            "In another terminal:",
            f"  export KAFLOW__KAFKA__BROKERS={broker.bootstrap}",
            *([f"  export KAFLOW__KAFKA__SCHEMAREGISTRY={registry.url}"] if registry else []),
            *(
                [f"  export KAFLOW__POSTGRES__CONNECTIONS__DEFAULT__URL='{database}'"]
                if postgres
                else []
            ),
            "  kaflow fakegen --rate 50 --duration 1m --seed 2",
            "  kaflow run PIPELINE.yaml",
            "",
            "Ctrl-C stops everything.",
        ]
    )
