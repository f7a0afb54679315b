"""The routes of `kaflow serve`: data sets over HTTP, as an ASGI application.

| route | answer |
|---|---|
| `/healthz` | whether a session is free; needs no token |
| `/metrics` | numbers, where they are asked for; needs no token |
| `/v1/datasets` | what there is |
| `/v1/datasets/{name}` | rows |
"""

import asyncio
import hmac
import json
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import unquote

from kaflow_engine.errors import KaflowError
from kaflow_engine.masking import without_secrets
from kaflow_engine.serving.datasets import Dataset
from kaflow_engine.serving.kept import Given, Keeper
from kaflow_engine.serving.listing import listing
from kaflow_engine.serving.metrics import ServeMetrics
from kaflow_engine.serving.pool import Answered, Pool
from kaflow_engine.serving.requests import Asked, Refused, key_of, read_request
from kaflow_engine.serving.sessions import Late, Prepared, Result
from kaflow_engine.serving.tables import MOST, ReadsTooMuch

LOGGER = logging.getLogger("kaflow.serve")

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]

_DATASETS = "/v1/datasets"
_HEALTH_S = 1.0
_JSON = "application/json"


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()
    kind: str = _JSON


@dataclass(slots=True)
class _Noted:
    """What is learnt of a request on its way, for the log."""

    token: str = ""
    dataset: str = ""
    grain: str = ""
    code: str = "ok"
    rows: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Answers requests."""

    datasets: Mapping[str, Dataset]
    prepared: Mapping[tuple[str, str], Prepared]
    """By data set and grain."""
    tokens: Mapping[str, str]
    origins: Collection[str] | None
    """Those whose pages may ask; None: pages are not spoken of."""
    pool: Pool
    keeper: Keeper
    metrics: ServeMetrics | None
    now: Callable[[], datetime]

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            raise ValueError(f"unexpected {scope['type']}")
        loop, noted = asyncio.get_running_loop(), _Noted()
        began = loop.time()
        given = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        try:
            answer = await self._answer(scope, given, noted)
        except Refused as refused:
            noted.code = refused.code
            body = {"error": {"code": refused.code, "message": refused.message}}
            answer = _Answer(refused.status, _json(body), refused.headers)
        except Exception as error:
            LOGGER.exception("a request failed")
            noted.code = "internal"
            body = {"error": {"code": "internal", "message": type(error).__name__}}
            answer = _Answer(500, _json(body))
        took = loop.time() - began
        if self.metrics is not None and noted.dataset:
            self.metrics.answered(noted.dataset, noted.grain, noted.code, took)
        LOGGER.info(
            "%s %s: %d %s, token %s, data set %s, grain %s, %d rows, %.0f ms",
            *(scope["method"], scope["path"], answer.status, noted.code, noted.token or "-"),
            *(noted.dataset or "-", noted.grain or "-", noted.rows, took * 1000),
        )
        headers = {
            "content-type": answer.kind,
            "content-length": str(len(answer.body)),
            "cache-control": "no-store",
            "x-content-type-options": "nosniff",
            **self._cors(given, scope["method"]),
            **dict(answer.headers),
        }
        head = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": answer.status, "headers": head})
        await send({"type": "http.response.body", "body": answer.body})

    async def _answer(
        self, scope: Mapping[str, Any], given: Mapping[str, str], noted: _Noted
    ) -> _Answer:
        method, path = scope["method"], scope["path"]
        if method == "OPTIONS" and self.origins is not None:
            return _Answer(204, b"")
        if method != "GET":
            raise Refused(405, "method_not_allowed", "all routes are GET", ("allow", "GET"))
        if path == "/healthz":
            free = await self.pool.is_free(_HEALTH_S)
            return _Answer(200 if free else 503, _json({"status": "ok" if free else "busy"}))
        if path == "/metrics" and self.metrics is not None:
            self.metrics.working(self.pool.at_work)
            return _Answer(200, self.metrics.text(), kind="text/plain; version=0.0.4")
        if path != _DATASETS and not path.startswith(f"{_DATASETS}/"):
            raise Refused(404, "not_found", f"there is no {path[:200]}")
        noted.token = self._who(given)
        if path == _DATASETS:
            return _Answer(200, _json(listing(self.datasets.values())))
        return await self._rows(path.removeprefix(f"{_DATASETS}/"), scope["query_string"], noted)

    def _who(self, given: Mapping[str, str]) -> str:
        scheme, _, token = given.get("authorization", "").partition(" ")
        found = ""
        for name, known in self.tokens.items():  # all of them: the time tells nothing
            if hmac.compare_digest(token.strip().encode(), known.encode()):
                found = name
        if scheme.lower() != "bearer" or not found:
            raise Refused(
                401,
                "unauthorized",
                "send a token that is configured, as Authorization: Bearer <token>",
                ("www-authenticate", "Bearer"),
            )
        return found

    async def _rows(self, name: str, query: bytes, noted: _Noted) -> _Answer:
        dataset = self.datasets.get(unquote(name))
        if dataset is None:
            raise Refused(404, "unknown_dataset", f"there is no data set {name[:200]}")
        noted.dataset = dataset.name
        asked = read_request(dataset, query.decode("latin-1"), self.now())
        noted.grain = asked.statement.grain
        try:
            body = await asyncio.wait_for(self._made(dataset, asked), dataset.timeout_s + 0.5)
        except (Late, TimeoutError):
            message = f"{asked.statement.where} took longer than {dataset.timeout_s:g} s"
            raise Refused(504, "query_timeout", message) from None
        except ReadsTooMuch:
            message = (
                f"{asked.statement.where} reads more than {MOST:,} rows of a table; ask for less"
            )
            raise Refused(422, "reads_too_much", message) from None
        except KaflowError as error:
            # who asks learns nothing of the database: its words may hold what is secret
            LOGGER.error("%s failed: %s", asked.statement.where, without_secrets(str(error)))
            message = f"{asked.statement.where} failed; the log of the server says why"
            raise Refused(500, "query_failed", message) from None
        noted.rows = body["row_count"]
        rows = body.pop("rows")
        return _Answer(
            200, _json({"dataset": dataset.name, **body})[:-1] + b',"rows":' + rows + b"}"
        )

    async def _made(self, dataset: Dataset, asked: Asked) -> dict[str, Any]:
        cost: list[Answered] = []

        async def make() -> Result:
            prepared = self.prepared[dataset.name, asked.statement.grain]
            answered = await self.pool.run(
                prepared, asked.values, dataset.most_rows, dataset.timeout_s
            )
            cost.append(answered)
            if self.metrics is not None:
                self.metrics.queried(
                    dataset.name, asked.statement.grain, answered.waited_s, answered.took_s
                )
            return answered.result

        if dataset.ttl_s is None:
            return _body(asked, Given(result=await make(), outcome="miss"), cost, kept=False)
        given = await self.keeper.answer(key_of(asked), dataset.ttl_s, make)
        if self.metrics is not None:
            self.metrics.kept(dataset.name, given.outcome)
        return _body(asked, given, cost, kept=True)

    def _cors(self, given: Mapping[str, str], method: str) -> dict[str, str]:
        if self.origins is None:
            return {}
        found = {"vary": "Origin"}
        origin = given.get("origin")
        if origin is None or origin not in self.origins:
            return found
        found["access-control-allow-origin"] = origin
        if method == "OPTIONS":
            found["access-control-allow-methods"] = "GET"
            found["access-control-allow-headers"] = "Authorization"
            found["access-control-max-age"] = "600"
        return found


def _body(asked: Asked, given: Given, cost: list[Answered], *, kept: bool) -> dict[str, Any]:
    body: dict[str, Any] = {"grain": asked.statement.grain} if asked.statement.grain else {}
    if asked.times is not None:
        since, until = (each.isoformat().replace("+00:00", "Z") for each in asked.times)
        body["range"] = {"since": since, "until": until}
    result = given.result
    body["columns"] = [{"name": name, "type": kind} for name, kind in result.columns]
    body["row_count"] = result.count
    body["truncated"] = result.truncated
    body["queued_ms"] = round(cost[0].waited_s * 1000) if cost else 0
    body["elapsed_ms"] = round(cost[0].took_s * 1000) if cost else 0
    if kept:
        body["cache"], body["age_ms"] = given.outcome, round(given.age_s * 1000)
    body["rows"] = result.rows
    return body


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
