"""What must hold between the keys of a file with `serve`."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from kaflow_engine.errors import ModelError, UnknownName
from kaflow_engine.model.durations import UNITS, format_duration
from kaflow_engine.model.spec import Path
from kaflow_engine.model.sqlflow.lowering.said import Placed
from kaflow_engine.model.sqlflow.serving.specs import DatasetSpec, GrainSpec, LimitsSpec, ServeSpec

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_GRAIN = re.compile(r"[a-z0-9][a-z0-9_]*")
_ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:\d+)?")
_WORDS = "write lower-case letters, digits and '_'"
GRAIN = "grain"
"""The parameter of a request that chooses a grain."""

T = TypeVar("T")


def broken_rules(
    serve: ServeSpec, said: Placed, tokens: Mapping[str, str], secrets: Mapping[str, str]
) -> Iterator[ModelError]:
    """Yield what is wrong in a file whose form is right.

    Args:
        serve: What it says.
        said: Where it says it.
        tokens: By name, empty where there is none.
        secrets: Those of the configuration.
    """
    yield from _tokens(serve, said, tokens, secrets)
    for number, origin in enumerate(serve.http.cors.allowed_origins if serve.http.cors else ()):
        if not _ORIGIN.fullmatch(origin):
            yield ModelError(
                f"'{origin}' is no origin of pages",
                said.at("serve", "http", "cors", "allowed_origins", number),
                "write https://host, in lower case and without a path",
            )
    yield from _limits(serve.limits, said, ("serve", "limits"))
    if not serve.datasets:
        at = said.at("serve", "datasets")
        yield ModelError("no data set is served", at, "write datasets: [{name: …, sql: …}]")
    for number, dataset in enumerate(serve.datasets):
        path = ("serve", "datasets", number)
        yield from _names(dataset, said, path)
        yield from _limits(dataset.limits, said, (*path, "limits"))
        yield from _statements(dataset, said, path)
        yield from _range(dataset, said, path)
        yield from _buckets(dataset, said, path)
    yield from _twice("data set", [each.name for each in serve.datasets], said, "datasets")


def _tokens(
    serve: ServeSpec, said: Placed, tokens: Mapping[str, str], secrets: Mapping[str, str]
) -> Iterator[ModelError]:
    path: Path = ("serve", "auth", "tokens")
    given = serve.auth.tokens
    if not given:
        yield ModelError(
            "no one may ask: there is no token",
            said.at(*path),
            "write tokens: [{name: page, token: '{{ SQLFLOW_SERVE_TOKEN }}'}]",
        )
    names = [each.name for each in given]
    for number, each in enumerate(given):
        at = said.at(*path, number)
        if (each.token is None) == (each.secret is None):
            yield ModelError(
                f"the token '{each.name}' needs token or secret, and not both",
                at,
                "write token: '{{ SQLFLOW_SERVE_TOKEN }}', or secret: a name under `secrets` of "
                "kaflow.yaml",
            )
        elif each.secret is not None and each.secret not in secrets:
            yield UnknownName("secret", each.secret, secrets, said.at(*path, number, "secret"))
        same = next((n for n in names[:number] if tokens[n] == tokens[each.name]), None)
        if same is not None and same != each.name and tokens[same]:
            yield ModelError(
                f"the tokens '{same}' and '{each.name}' are the same",
                at,
                "give each who asks a token of its own",
            )
    for number, name in _repeated(names):
        yield ModelError(f"two tokens are called '{name}'", said.at(*path, number), "rename one")


def _names(dataset: DatasetSpec, said: Placed, path: Path) -> Iterator[ModelError]:
    if not _NAME.fullmatch(dataset.name):
        at = said.at(*path, "name")
        yield ModelError(f"a data set cannot be called '{dataset.name}'", at, _WORDS)
    names = [param.name for param in dataset.params]
    for number, name in enumerate(names):
        at = said.at(*path, "params", number, "name")
        if name == GRAIN or not _NAME.fullmatch(name):
            hint = "grain chooses the grain" if name == GRAIN else _WORDS
            yield ModelError(f"a parameter cannot be called '{name}'", at, hint)
    for number, name in _repeated(names):
        at = said.at(*path, "params", number)
        yield ModelError(f"two parameters are called '{name}'", at, "remove one of them")


def _limits(limits: LimitsSpec, said: Placed, path: Path) -> Iterator[ModelError]:
    rate = limits.rate_limit
    if rate is not None and (rate.requests_per_second or rate.burst):
        yield ModelError(
            "how often one may ask is not limited here",
            said.at(*path, "rate_limit"),
            "remove rate_limit, and let the proxy before it count",
        )


def _statements(dataset: DatasetSpec, said: Placed, path: Path) -> Iterator[ModelError]:
    if (dataset.sql is None) == (not dataset.grains):
        yield ModelError(
            f"the data set '{dataset.name}' needs sql or grains, and not both",
            said.at(*path),
            "write sql: SELECT …, or grains: {1h: {sql: SELECT …}}",
        )
    for name in dataset.grains:
        if not _GRAIN.fullmatch(name):
            at = said.at(*path, "grains", name)
            yield ModelError(f"a grain cannot be called '{name}'", at, _WORDS)


def _range(dataset: DatasetSpec, said: Placed, path: Path) -> Iterator[ModelError]:
    span, grains = dataset.range, dataset.grains
    if span is None:
        for name, grain in grains.items():
            for key in ("max_range", "bucket"):
                if getattr(grain, key) is not None:
                    yield ModelError(
                        f"'{key}' says nothing without `range` of the data set",
                        said.at(*path, "grains", name, key),
                        "write range: {since: since, until: until, default: 24h}",
                    )
        return
    at = said.at(*path, "range")
    times = [param.name for param in dataset.params if param.type == "timestamp"]
    for key in ("since", "until"):
        name = getattr(span, key)
        if name not in times:
            yield UnknownName(
                "parameter of type timestamp", name, times, said.at(*path, "range", key)
            )
    if span.since == span.until:
        yield ModelError("a range needs two parameters", at, "write range: {since: …, until: …}")
    if not grains:
        yield ModelError("a range chooses among grains", at, "write grains, or remove range")
    widths: dict[int, str] = {}
    for name, grain in grains.items():
        if not grain.max_range:
            hint = "write max_range: the longest time that is asked for in these steps"
            yield ModelError(
                f"the grain '{name}' needs max_range", said.at(*path, "grains", name), hint
            )
            continue
        other = widths.setdefault(grain.max_range, name)
        if other != name:
            yield ModelError(
                f"the grains '{other}' and '{name}' have the same max_range",
                said.at(*path, "grains", name, "max_range"),
                "the finest that fits is chosen: make one of them longer",
            )
    if not span.default or (widths and span.default > max(widths)):
        yield ModelError(
            "the default of a range must be greater than 0 and within the longest max_range",
            said.at(*path, "range", "default"),
            f"write at most {format_duration(max(widths, default=UNITS['d']))}",
        )


def _buckets(dataset: DatasetSpec, said: Placed, path: Path) -> Iterator[ModelError]:
    for name, grain in dataset.grains.items() if dataset.range else ():
        at = said.at(*path, "grains", name, "bucket")
        if grain.bucket is None and dataset.cache is not None:
            yield ModelError(
                f"the grain '{name}' needs bucket, as answers are kept by it",
                said.at(*path, "grains", name),
                "write bucket: how long one step of it is",
            )
        elif not _is_aligned(grain):
            yield ModelError(
                "a bucket must go into a day without a rest", at, "write 5m, 1h or 1d for example"
            )


def _is_aligned(grain: GrainSpec) -> bool:
    return grain.bucket is None or (grain.bucket > 0 and UNITS["d"] % grain.bucket == 0)


def _twice(noun: str, names: Sequence[str], said: Placed, key: str) -> Iterator[ModelError]:
    for number, name in _repeated(names):
        at = said.at("serve", key, number)
        yield ModelError(f"two {noun}s are called '{name}'", at, "rename one of them")


def _repeated(names: Sequence[T]) -> Iterator[tuple[int, T]]:
    return ((n, name) for n, name in enumerate(names) if name in names[:n])
