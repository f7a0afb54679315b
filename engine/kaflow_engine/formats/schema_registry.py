"""Client of the Confluent schema registry, with retries and plain error messages."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit, urlunsplit

from kaflow_engine.errors import SinkError, SourceError
from kaflow_engine.formats.references import with_references

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

_Found = TypeVar("_Found")
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 2.0
_LATER = frozenset({408, 429, 500, 502, 503, 504})

_REASONS = {
    "refused": "connection refused",
    "timeout": "no answer in time",
    "timed out": "no answer in time",
    "name or service": "its name is not known",
    "certificate": "its certificate is not trusted",
}
"""Part of what an HTTP library says → what it means."""


class RegistryAway(SourceError):
    """The registry does not answer; it may come back."""

    outage = "retry"


class UnknownSchema(LookupError):
    """The registry has no schema of this id."""


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema as the registry has it."""

    id: int
    version: int
    schema: str
    """Its text, with those that it refers to."""
    language: str = "AVRO"
    """As the registry calls it: `AVRO`, `PROTOBUF`, `JSON`."""


@dataclass(frozen=True, slots=True)
class _Refused(Exception):
    status: int
    code: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """A schema registry that speaks Confluent's protocol; plain data, so it travels to tasks."""

    url: str = field(repr=False)
    """With or without `user:password@`; several addresses are separated by commas."""
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    timeout: float = 10.0
    """Seconds for one request."""
    patience: float = 30.0
    """Seconds in all for one question to a registry that does not answer."""

    @property
    def address(self) -> str:
        """The URL without credentials, as messages show it."""
        return ",".join(_bare(url) for url in self.url.split(","))

    def latest(self, subject: str) -> RegisteredSchema | None:
        """Return the newest schema of a subject, None where there is no such subject."""

        def ask(client: "SchemaRegistryClient") -> RegisteredSchema:
            client.clear_latest_caches()
            found = client.get_latest_version(subject)
            return RegisteredSchema(
                _given(found.schema_id),
                _given(found.version),
                _whole(client, found.schema),
                found.schema.schema_type or "AVRO",
            )

        try:
            return self._ask(ask)
        except _Refused as refused:
            if _is_absent(refused):
                return None
            raise self._unusable(refused, f"subject '{subject}'") from None

    def by_id(self, schema_id: int) -> str:
        """Return the text of a schema; raise UnknownSchema where there is none of this id.

        Schemas that it refers to are part of the text; see `references.parts_of`.
        """
        return _by_id(self, schema_id)

    def fetch(self, schema_id: int) -> str:
        """As `by_id`, past the cache."""
        try:
            return self._ask(lambda client: _whole(client, client.get_schema(schema_id)))
        except _Refused as refused:
            if _is_absent(refused):
                raise UnknownSchema(schema_id) from None
            raise self._unusable(refused, f"schema {schema_id}") from None

    def register(self, subject: str, schema: str, kind: str) -> int:
        """Register a schema and return its id, the same id as before for the same schema.

        `kind` is what the registry calls its language: `AVRO`, `PROTOBUF`, `JSON`.
        Raise SinkError with the registry's message when it refuses the schema.
        """
        from confluent_kafka.schema_registry import Schema

        try:
            return self._ask(lambda client: client.register_schema(subject, Schema(schema, kind)))
        except _Refused as refused:
            if refused.status not in (409, 422):
                raise self._unusable(refused, f"subject '{subject}'") from None
            raise SinkError(
                f"the schema registry refuses the schema of '{subject}': {refused.message}",
                hint="change the query or output.schema so that it stays compatible, "
                "or write to another topic",
            ) from None

    def takes(self, subject: str, schema: str, kind: str) -> bool:
        """Tell whether a subject holds a schema, or its newest one is compatible with it.

        What older ones say to it is known when it is registered.
        """
        from confluent_kafka.schema_registry import Schema

        wanted = Schema(schema, kind)
        try:
            self._ask(lambda client: client.lookup_schema(subject, wanted))
        except _Refused as refused:
            if not _is_absent(refused):
                raise self._unusable(refused, f"subject '{subject}'") from None
        else:
            return True
        try:
            return self._ask(lambda client: client.test_compatibility(subject, wanted))
        except _Refused as refused:
            if refused.status in (409, 422):
                return False
            raise self._unusable(refused, f"subject '{subject}'") from None

    def _ask(self, ask: "Callable[[SchemaRegistryClient], _Found]") -> _Found:
        from confluent_kafka.schema_registry.error import SchemaRegistryError

        give_up = time.monotonic() + self.patience
        pause = _FIRST_PAUSE
        while True:
            try:
                return ask(_client(self))
            except SchemaRegistryError as error:
                refused = _Refused(error.http_status_code, error.error_code, error.error_message)
                if refused.status not in _LATER:
                    raise refused from None
                why = f"HTTP {refused.status} {refused.message}"
            except Exception as error:  # the client passes any error of its HTTP library through
                why = _reason(error)
            if time.monotonic() + pause > give_up:
                raise RegistryAway(
                    f"the schema registry at {self.address} does not answer: {why}",
                    hint="check kafka.schemaRegistry and that the registry runs",
                ) from None
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _unusable(self, refused: _Refused, what: str) -> SourceError:
        secret = refused.status in (401, 403)
        return SourceError(
            f"the schema registry at {self.address} answers HTTP {refused.status} "
            f"for {what}: {refused.message}",
            hint="check the user and password" if secret else "check kafka.schemaRegistry",
        )


@lru_cache(maxsize=4096)
def _by_id(registry: Registry, schema_id: int) -> str:
    return registry.fetch(schema_id)


@lru_cache(maxsize=16)
def _client(registry: Registry) -> "SchemaRegistryClient":
    from confluent_kafka.schema_registry import SchemaRegistryClient

    settings: dict[str, object] = {
        "url": registry.url,
        "timeout": registry.timeout,
        "max.retries": 0,  # the patience is ours, in seconds
    }
    if registry.user is not None:
        settings["url"] = registry.address
        settings["basic.auth.user.info"] = f"{registry.user}:{registry.password or ''}"
    return SchemaRegistryClient(settings)


def _whole(client: "SchemaRegistryClient", schema: "Schema") -> str:
    found: dict[str, str] = {}
    _collect(client, schema, found)
    return with_references(_given(schema.schema_str), found)


def _collect(client: "SchemaRegistryClient", schema: "Schema", found: dict[str, str]) -> None:
    for reference in schema.references or ():
        name, subject = _given(reference.name), _given(reference.subject)
        if name not in found:
            other = client.get_version(subject, _given(reference.version)).schema
            found[name] = _given(other.schema_str)
            _collect(client, other, found)


def _reason(error: Exception) -> str:
    said = f"{type(error).__name__}: {error}"
    found = (words for part, words in _REASONS.items() if part in said.lower())
    return next(found, said)


def _is_absent(refused: _Refused) -> bool:
    # a 404 without a registry's error code: the URL is not that of a schema registry
    return refused.status == 404 and 40400 <= refused.code < 40500


def _given(value: _Found | None) -> _Found:
    if value is None:
        raise ValueError("the answer of the registry is incomplete")
    return value


def _bare(url: str) -> str:
    parts = urlsplit(url.strip())
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
