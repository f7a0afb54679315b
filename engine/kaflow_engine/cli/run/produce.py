"""`kaflow produce`: lines of the standard input as records of a topic."""

import json
import sys
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.errors import ModelError
from kaflow_engine.model.configuration.load_config import find_config, load_config
from kaflow_engine.testing.sample.feed import create_topics, send


class _HeaderType(click.ParamType[tuple[str, bytes]]):
    name = "header"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, bytes]:
        if isinstance(value, tuple):
            return value  # pyright: ignore[reportUnknownVariableType]
        name, parted, text = str(value).partition("=")
        if not name or not parted:
            self.fail(f"'{value}' is not a header; write it as source=web", param, ctx)
        return name, text.encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A line on its way."""

    topic: str
    key: bytes | None
    value: bytes
    headers: tuple[tuple[str, bytes], ...]
    timestamp: int = 0


@dataclass(slots=True, kw_only=True)
class _Lines:
    """The lines of the standard input, up to one that cannot be sent."""

    topic: str
    key: str | None
    headers: tuple[tuple[str, bytes], ...]
    mistake: ModelError | None = None

    def read(self) -> Generator[_Line]:
        """Yield them until they end, by Ctrl-C too."""
        try:
            for number, line in enumerate(sys.stdin.buffer, 1):
                value = line.rstrip(b"\r\n")
                if not value:
                    continue
                key = self._key(value, number)
                if self.mistake is not None:
                    return
                yield _Line(topic=self.topic, key=key, value=value, headers=self.headers)
        except KeyboardInterrupt:
            return

    def _key(self, value: bytes, number: int) -> bytes | None:
        if self.key is None:
            return None
        try:
            found: Any = json.loads(value)
        except ValueError:
            found = None
        if not isinstance(found, dict) or self.key not in found:
            self.mistake = ModelError(
                f"line {number} of the standard input has no field '{self.key}'",
                hint="send JSON objects that have it, or leave out --key; lines before it were "
                "sent",
            )
            return None
        part: Any = found[self.key]  # pyright: ignore[reportUnknownVariableType]
        if part is None:
            return None
        return (part if isinstance(part, str) else json.dumps(part)).encode()


@click.command("produce")
@click.argument("topic")
@click.option("--key", metavar="FIELD", help="The field of each line whose text is the key.")
@click.option(
    "--header",
    "headers",
    multiple=True,
    type=_HeaderType(),
    metavar="NAME=TEXT",
    help="A header of each record; may be repeated.",
)
@click.option(
    "--partitions",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Of the topic, where it is created.",
)
@click.option("--brokers", help="host:port, comma-separated; default: those of the configuration.")
@click.option(
    "--config", "config_file", type=click.Path(path_type=Path), help="The configuration file."
)
def command(
    topic: str,
    key: str | None,
    headers: tuple[tuple[str, bytes], ...],
    partitions: int,
    brokers: str | None,
    config_file: Path | None,
) -> None:
    """Send each line of the standard input to TOPIC, which is created where there is none."""
    overrides = {"kafka.brokers": brokers} if brokers else None
    kafka = load_config(config_file or find_config(Path.cwd()), overrides=overrides).kafka
    settings = KafkaSettings.configured(kafka)
    for created in create_topics(settings, [topic], partitions):
        click.echo(f"created topic {created}", err=True)
    lines = _Lines(topic=topic, key=key, headers=headers)
    sent = send(settings, lines.read())
    click.echo(
        f"sent {sent} record{'s' * (sent != 1)} to {topic} at {settings.bootstrap}", err=True
    )
    if lines.mistake is not None:
        raise lines.mistake
