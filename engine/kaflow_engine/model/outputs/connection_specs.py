"""Where outside systems are beside Kafka, and how to log in: connections, by kind and name."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from kaflow_engine.masking import is_secret
from kaflow_engine.model.durations import Duration
from kaflow_engine.model.names import (
    Filled,
    is_address,
    refuse,
    require_header,
    require_http,
    split_names,
)
from kaflow_engine.model.spec import Spec


def _database(text: str) -> str:
    if not re.match(r"postgres(ql)?://[^\s/]+", text):
        hint = "write postgresql://user:password@host:5432/database"
        raise refuse("is not the address of a database", hint)
    return text


def _mysql(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme != "mysql" or not parts.hostname or parts.query or parts.fragment:
        hint = "write mysql://user:password@host:3306/database"
        raise refuse("is not the address of a database", hint)
    return text


def _server(text: str) -> str:
    if not is_address(text) or not re.fullmatch(r"[^?#]*://[^/?#]+(/[^/?#]*)?/?", text):
        raise refuse("is not the address of a server", "write https://host:8443/database")
    return text


def _catalog(text: str) -> str:
    if not re.match(r"[a-z][a-z0-9+]*://", text):
        hint = "write sqlite:////folder/catalog.db, postgresql+psycopg://… or https://host:8181"
        raise refuse("is not the address of a catalog", hint)
    return text


DATABASES = ("duckdb", "mysql", "postgres", "sqlite")
"""Kinds of databases that ATTACH may name."""


def _of_databases(kinds: tuple[str, ...]) -> tuple[str, ...]:
    for kind in kinds:
        if kind not in DATABASES:
            raise refuse(f"cannot have '{kind}'", f"known: {', '.join(DATABASES)}")
    return kinds


_OF_EACH_REQUEST = ("content-type", "content-length", "host", "idempotency-key")


def http_headers(given: dict[str, str]) -> dict[str, str]:
    """Refuse headers that no request can have, or that each request has of its own."""
    for name, value in given.items():
        require_header(name, value, lambda each: each in _OF_EACH_REQUEST)
    return given


def public_headers(given: dict[str, str], *, instead: str) -> dict[str, str]:
    """Refuse headers that no request can have, and those that are secrets.

    Args:
        given: Headers that everyone may know.
        instead: Where a secret belongs; `{name}` is the header.
    """
    for name in http_headers(given):
        if is_secret(name):
            raise refuse(f"cannot have '{name}', which is a secret", instead.format(name=name))
    return given


class ConnectionSpec(Spec):
    """What outputs of one kind need to reach a system."""

    @property
    def settings(self) -> Mapping[str, str]:
        """What tasks are handed; secrets among them."""
        raise NotImplementedError


class PostgresConnection(ConnectionSpec):
    """A database, and who logs in to it."""

    url: Annotated[Filled, AfterValidator(_database)] = Field(repr=False)
    """`postgresql://user:password@host:5432/database`; libpq's parameters may follow."""
    password: Filled | None = Field(default=None, repr=False)
    """Instead of one in the URL, where it would have to be quoted."""

    @property
    def settings(self) -> Mapping[str, str]:
        """What tasks are handed."""
        return {
            "url": self.url,
            **({} if self.password is None else {"password": self.password}),
        }


class MySQLConnection(ConnectionSpec):
    """A database of MySQL or MariaDB, and who logs in to it."""

    url: Annotated[Filled, AfterValidator(_mysql)] = Field(repr=False)
    """`mysql://user:password@host:3306/database`."""
    password: Filled | None = Field(default=None, repr=False)
    """Instead of one in the URL, where it would have to be quoted."""
    ca: Filled | None = None
    """The file of the certificates that the server must have one of; None: without TLS."""

    @property
    def settings(self) -> Mapping[str, str]:
        """What tasks are handed."""
        found = {"url": self.url, "password": self.password, "ca": self.ca}
        return {key: value for key, value in found.items() if value is not None}


class ClickHouseConnection(ConnectionSpec):
    """A server, by its HTTP interface, and who logs in to it."""

    url: Annotated[Filled, AfterValidator(_server)] = Field(repr=False)
    """`https://user:password@host:8443/database`."""
    user: Filled | None = None
    """Instead of one in the URL."""
    password: Filled | None = Field(default=None, repr=False)
    """Instead of one in the URL, where it would have to be quoted."""

    @property
    def settings(self) -> Mapping[str, str]:
        """What tasks are handed."""
        parts = urlsplit(self.url)
        place = parts.netloc.rpartition("@")[2]
        said = {
            "database": unquote(parts.path.strip("/")),
            "user": self.user or unquote(parts.username or ""),
            "password": self.password or unquote(parts.password or ""),
        }
        found = {key: value for key, value in said.items() if value}
        return {"url": f"{parts.scheme}://{place}/", **found}


class IcebergConnection(ConnectionSpec):
    """A catalog of tables, and where their files lie."""

    catalog: Literal["sql", "rest"] = "sql"
    """In a database, or behind the REST protocol of Iceberg."""
    uri: Annotated[Filled, AfterValidator(_catalog)] = Field(repr=False)
    """`sqlite:////folder/catalog.db`, `postgresql+psycopg://…`, or `https://host:8181`."""
    warehouse: Filled | None = None
    """The folder of tables that are created, or `s3://bucket/folder`; a REST catalog may know it
    itself."""
    properties: dict[str, str] = Field(default={}, repr=False)
    """More of what pyiceberg takes, such as `s3.endpoint`, `s3.access-key-id` and `credential`."""

    @property
    def settings(self) -> Mapping[str, str]:
        """What the driver is handed."""
        warehouse = self.warehouse
        if warehouse is not None and "://" not in warehouse:
            warehouse = str(Path(warehouse).absolute())
        found = {"type": self.catalog, "uri": self.uri, "warehouse": warehouse}
        own = {key: value for key, value in found.items() if value is not None}
        return {"properties": json.dumps({**self.properties, **own})}


class WebhookConnection(ConnectionSpec):
    """An address that takes rows, and how its server knows who sends."""

    url: Annotated[Filled, AfterValidator(require_http)] = Field(repr=False)
    """Whoever knows it may write there, so that it is shown as a secret is."""
    headers: Annotated[dict[str, str], AfterValidator(http_headers)] = Field(default={}, repr=False)
    """Of each request, such as `Authorization`."""
    secret: Filled | None = Field(default=None, repr=False)
    """With which each body is signed, by HMAC with SHA-256."""
    timeout: Annotated[Duration, Field(gt=0)] = 10_000
    """How long an answer is waited for, in ms."""

    @property
    def settings(self) -> Mapping[str, str]:
        """What tasks are handed."""
        return {
            "url": self.url,
            "headers": json.dumps(self.headers),
            "timeout": str(self.timeout),
            **({} if self.secret is None else {"secret": self.secret}),
        }


class CommandConnection(ConnectionSpec):
    """What statements of pipelines may use; whoever writes them decides no more than that."""

    setup: str = Field(default="", repr=False)
    """SQL of DuckDB, run before anything else: what is attached, and logged in to."""
    folders: tuple[Filled, ...] = ()
    """Whose files statements may read and write."""

    @property
    def settings(self) -> Mapping[str, str]:
        """What the driver is handed."""
        folders = [str(Path(folder).absolute()) for folder in self.folders]
        return {"setup": self.setup, "folders": json.dumps(folders)}


class PluginConfig(Spec):
    """What a plugin needs beside the options of an output or a source."""

    module: Filled | None = None
    """Where the class of a data source of PySpark is; pipelines cannot name it."""
    settings: dict[str, str] = Field(default={}, repr=False)
    """Where it connects to, and how it logs in; by names that the plugin chooses."""


class PostgresConfig(Spec):
    """PostgreSQL databases."""

    connections: dict[str, PostgresConnection] = Field(default={})
    """By the names that outputs give them."""


class MySQLConfig(Spec):
    """MySQL and MariaDB databases."""

    connections: dict[str, MySQLConnection] = Field(default={})
    """By the names that sources give them."""


class ClickHouseConfig(Spec):
    """ClickHouse servers."""

    connections: dict[str, ClickHouseConnection] = Field(default={})
    """By the names that outputs give them."""


class IcebergConfig(Spec):
    """Catalogs of Iceberg tables."""

    connections: dict[str, IcebergConnection] = Field(default={})
    """By the names that outputs give them."""


class CommandConfig(Spec):
    """What outputs of statements may touch."""

    connections: dict[str, CommandConnection] = Field(default={})
    """By the names that outputs give them."""


class WebhookConfig(Spec):
    """Addresses that take rows."""

    connections: dict[str, WebhookConnection] = Field(default={})
    """By the names that outputs give them."""


class SqlConfig(Spec):
    """What SQL of pipeline files may open by itself."""

    attach: Annotated[
        tuple[str, ...], BeforeValidator(split_names), AfterValidator(_of_databases)
    ] = ()
    """Kinds of databases."""
    read: Annotated[tuple[Filled, ...], BeforeValidator(split_names)] = ()
    """Files, and folders with all that is in them and below."""
    write: Annotated[tuple[Filled, ...], BeforeValidator(split_names)] = ()
    """Folders that statements of outputs may read and write, with all that is below, beside those
    of `command.connections.default`."""
