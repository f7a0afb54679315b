"""Relations that are transforms: each kind, which `type` names, has settings of its own."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag

from kaflow_engine.model.durations import Duration
from kaflow_engine.model.names import Filled, public_url, refuse
from kaflow_engine.model.outputs.connection_specs import http_headers, public_headers
from kaflow_engine.model.plugin_options import Option, PluginName
from kaflow_engine.model.relations.dynamic_table_specs import DynamicTableSpec
from kaflow_engine.model.relations.relation_specs import RelationSpec
from kaflow_engine.model.spec import CHOICE, Spec, type_of

_TYPES = ("dynamic_table", "handler", "script")
_QUERY = f"{CHOICE}query"

SECRET_HEADERS = "write secret_headers: {Authorization: <secret>}"
ITS_SECRET = "write secret_headers: {{{name}: <one of secrets in the configuration>}}"
"""Where a header that is a secret belongs."""
_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def parse_size(text: str) -> int:
    """Return the bytes of a text such as `64MB`.

    >>> parse_size("64MB"), parse_size("1 GiB")
    (64000000, 1073741824)

    Raises:
        PydanticCustomError: It is no size.
    """
    number = text.rstrip("BbGgIiKkMm").strip()
    unit = _UNITS.get(text[len(text.rstrip("BbGgIiKkMm")) :].upper())
    if unit is None or not number.isdecimal():
        raise refuse("is not a size", "write a number and KB, MB or GB, such as 64MB")
    return int(number) * unit


def _memory(value: object) -> int:
    size = parse_size(str(value))
    if not 1_000_000 <= size <= 2_000_000_000:
        raise refuse("must be from 1MB to 2GB", "64MB is what scripts have where nothing is said")
    return size


Memory = Annotated[int, BeforeValidator(_memory)]
"""Bytes."""


class TransformSpec(Spec):
    """A relation whose rows are made of those of another one, each alone, without SQL."""

    type: Any
    from_: Filled = Field(alias="from")
    """The topic, source or relation that is read."""
    schema_: dict[str, Filled | None] = Field(default={}, alias="schema")
    """Columns that it adds or gives another type; `null`: it takes the column away."""
    description: str | None = None
    """What it is, for those who read `explain` and Dagster's page."""


class ScriptSpec(TransformSpec):
    """A script that is called with each row."""

    type: Literal["script"]
    language: Literal["javascript", "typescript"] = "javascript"
    """Types of TypeScript are taken away; they are not checked."""
    script: Filled | None = None
    """Its text."""
    file: Filled | None = None
    """Where its text stands instead, from the folder of the pipeline file."""
    timeout: Duration = Field(default=1_000, gt=0)
    """How long one row may take, in ms."""
    memory: Memory = 64_000_000
    """How much the script may have."""
    adds: Mapping[str, str] = Field(default={}, exclude=True)
    """Columns that it sets where none of the name comes in, as its front end found; not a key of
    the file."""


class HandlerSpec(TransformSpec):
    """An HTTP service that is asked about each row."""

    type: Literal["handler"]
    url: Annotated[Filled, AfterValidator(partial(public_url, instead=SECRET_HEADERS))]
    """Of the service; everyone may know it."""
    headers: Annotated[
        dict[str, str], AfterValidator(partial(public_headers, instead=ITS_SECRET))
    ] = Field(default={})
    """Of each request, such as `X-Tenant`; everyone may know them."""
    secret_headers: Annotated[dict[str, Filled], AfterValidator(http_headers)] = Field(default={})
    """Headers such as `Authorization`: each value is the name of one of `secrets` in the
    configuration."""
    secret: Filled | None = None
    """One of `secrets` in the configuration, with which each body is signed, by HMAC with
    SHA-256."""
    batch: Annotated[int, Field(gt=0, le=10_000)] | None = None
    """Most rows of a request, which is then a list; None: a request is one row."""
    concurrency: int = Field(default=8, gt=0, le=256)
    """How many requests a task has in flight."""
    envelope: Literal["none", "metadata"] = "none"
    """Whether a row, and what is answered of it, is itself or stands in
    `{"metadata": {"op": "i"}, "data": …}`."""
    op_column: Filled | None = None
    """The column that says what `op` of the envelope is, and is then not in the row; an answer may
    still have it."""
    timeout: Duration = Field(default=10_000, gt=0)
    """How long an answer is waited for, in ms."""
    retry_for: Duration = 10_000
    """How long a request is sent again, in ms, before its batch fails and is tried again until
    `retry_deadline` of the configuration."""

    @property
    def secrets(self) -> Mapping[tuple[str, ...], str]:
        """The names of its secrets, by where they stand."""
        own: dict[tuple[str, ...], str] = {} if self.secret is None else {("secret",): self.secret}
        return own | {("secret_headers", name): of for name, of in self.secret_headers.items()}


class PluginTransformSpec(TransformSpec):
    """A kind of transform that an installed package offers."""

    type: PluginName
    """`<namespace>.<name>`: an entry point of the group `kaflow.transforms`."""
    options: dict[str, Option] = Field(default={})
    """What the plugin takes; it says itself what is right."""


def _choice(value: object) -> str:
    """Return the tag of what a relation is; an unknown `type` is reported with its key."""
    kind = type_of(value)
    if isinstance(kind, str) and "." in kind:
        return f"{CHOICE}plugin"
    return f"{CHOICE}{kind}" if kind in _TYPES else _QUERY


AnyTransform = ScriptSpec | HandlerSpec | PluginTransformSpec
"""What a transform may be."""

AnyRelation = Annotated[
    Annotated[RelationSpec, Tag(_QUERY)]
    | Annotated[DynamicTableSpec, Tag("\0dynamic_table")]
    | Annotated[ScriptSpec, Tag("\0script")]
    | Annotated[HandlerSpec, Tag("\0handler")]
    | Annotated[PluginTransformSpec, Tag("\0plugin")],
    Discriminator(_choice),
]
"""What each of `relations` may be."""
