"""What a file with `serve` says, as frozen data."""

from typing import Literal

from pydantic import Field

from kaflow_engine.model.durations import Duration
from kaflow_engine.model.names import Filled
from kaflow_engine.model.sources.addresses import Listen
from kaflow_engine.model.spec import Spec
from kaflow_engine.model.sqlflow.specs import CommandSpec


class CorsSpec(Spec):
    """Pages of other sites whose scripts may ask."""

    allowed_origins: tuple[Filled, ...]


class HttpSpec(Spec):
    """Where requests come in."""

    addr: Listen = "127.0.0.1:8080"
    """Host and port; of port 0 the system chooses one."""
    cors: CorsSpec | None = None


class TokenSpec(Spec):
    """Who may ask."""

    name: Filled
    token: Filled | None = None
    secret: Filled | None = None
    """A name among the secrets of the configuration, instead of the token itself."""


class AuthSpec(Spec):
    """All who may ask."""

    tokens: tuple[TokenSpec, ...]


class RateLimitSpec(Spec):
    """How often one may ask, which is not enforced: only zeros may stand here."""

    requests_per_second: float = Field(default=0)
    burst: int = Field(default=0)


class LimitsSpec(Spec):
    """What an answer may cost."""

    max_rows: int | None = Field(default=None, gt=0)
    timeout_seconds: float | None = Field(default=None, gt=0)
    rate_limit: RateLimitSpec | None = None


class PoolSpec(Spec):
    """How many requests are answered at a time."""

    size: int = Field(default=4, gt=0, le=64)


class MetricsSpec(Spec):
    """Whether `/metrics` is there."""

    enabled: bool = False


class CacheSpec(Spec):
    """How much memory kept answers may take."""

    max_mb: int = Field(default=16, gt=0)


class KeptSpec(Spec):
    """That answers of a data set are kept, and how long."""

    ttl_seconds: int = Field(gt=0)


class ParamSpec(Spec):
    """What a request may say."""

    name: Filled
    type: Literal["string", "integer", "timestamp"]


class RangeSpec(Spec):
    """The parameters between which times lie."""

    since: Filled
    until: Filled
    default: Duration


class GrainSpec(Spec):
    """One statement of several: the same data set in other steps."""

    sql: Filled
    max_range: Duration | None = None
    bucket: Duration | None = None


class DatasetSpec(Spec):
    """Something that can be asked for."""

    name: Filled
    description: str = ""
    params: tuple[ParamSpec, ...] = ()
    limits: LimitsSpec = LimitsSpec()
    cache: KeptSpec | None = None
    range: RangeSpec | None = None
    sql: Filled | None = None
    grains: dict[str, GrainSpec] = Field(default={})


class ServeSpec(Spec):
    """All that is served, and how."""

    name: Filled | None = None
    http: HttpSpec = HttpSpec()
    auth: AuthSpec
    limits: LimitsSpec = LimitsSpec()
    pool: PoolSpec = PoolSpec()
    metrics: MetricsSpec = MetricsSpec()
    cache: CacheSpec = CacheSpec()
    datasets: tuple[DatasetSpec, ...]


class ServeFileSpec(Spec):
    """A whole file."""

    commands: tuple[CommandSpec, ...] = ()
    serve: ServeSpec
