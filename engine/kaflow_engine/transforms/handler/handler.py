"""A service asked about rows: what it answers is kept first, and then becomes their columns."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Event
from time import monotonic
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.connectors.http.asking import Outcome, in_flight
from kaflow_engine.connectors.http.client import Endpoint
from kaflow_engine.connectors.http.errors import HttpUnfit
from kaflow_engine.flow.transforms import HandlerParams, Transform
from kaflow_engine.formats.contract import format_of
from kaflow_engine.masking import remember_settings
from kaflow_engine.measures import Measures
from kaflow_engine.operators.transform.contract import TransformBatch, Transformed
from kaflow_engine.state.kept import KEPT
from kaflow_engine.transforms.handler.answered_rows import answered_rows
from kaflow_engine.transforms.handler.question import Answered, Question, Service
from kaflow_engine.transforms.row_answers import own_first, row_keys

_KEPT_EVERY_S = 2.0
"""A task that asks for long keeps what it has so far, so that a kill repeats no more than that."""


@dataclass(frozen=True, slots=True)
class Handler:
    """Asks about rows, some in one request and some requests at once."""

    transform: Transform
    params: HandlerParams

    def __call__(self, rows: pa.Table, batch: TransformBatch) -> Transformed:
        """Return what the service makes of rows, asked now or in an earlier try of the batch.

        Raises:
            HttpAway: It does not answer, or not in time.
            HttpUnfit: The address or the login is not what it wants.
        """
        column = self.params.op_column
        own = tuple(each for each in self.transform.columns if each.name != column)
        plain = format_of("json").encoder(own, None).encode(rows).array
        bodies = self._in_envelopes(plain, rows)
        # only an operation of its own makes another question of a row
        keys = row_keys(batch.identities(), plain if column is None else bodies)
        kept = own_first(batch.answers.kept_rows(self.transform.name), self.transform.id)
        missing = pc.unique(keys.filter(pc.invert(pc.is_in(keys, _of(kept)))))
        if len(missing):
            about = bodies.take(pc.index_in(missing, value_set=keys))
            kept = pa.concat_tables([kept, self._ask(about, missing, batch)])
        return answered_rows(rows, kept.take(pc.index_in(keys, _of(kept))), self.transform)

    def _in_envelopes(self, bodies: pa.Array, rows: pa.Table) -> pa.Array:
        """Return what is sent of each row."""
        if self.params.envelope == "none":
            return bodies
        column = self.params.op_column
        if column is None:
            head: Any = pa.scalar(_head("i"), bodies.type)
        else:
            head = pa.array(map(_head, rows[column].to_pylist()), bodies.type)
        return pc.binary_join_element_wise(head, bodies, b"}", b"")

    def _ask(self, bodies: pa.Array, keys: pa.Array, batch: TransformBatch) -> pa.Table:
        """Ask about rows, and keep the answers as they come."""
        size = self.params.batch or 1
        starts = range(0, len(keys), size)
        service = Service(
            endpoint=endpoint_of(self.transform.name, self.params, batch.secrets),
            params=self.params,
            about=f"{self.transform.name} {batch.mark}",
            on_answer=partial(_count, batch.measures, self.transform.name),
        )

        def asks(number: int, stop: Event) -> list[Answered]:
            mine = slice(starts[number], starts[number] + size)
            question = Question(bodies[mine].to_pylist(), keys[mine].to_pylist())
            return list(service.answers(question, stop))

        found: list[pa.Table] = []
        fresh: list[tuple[int, list[Answered]]] = []

        def keep() -> None:
            if fresh:
                found.append(self._kept(keys, [(starts[n], said) for n, said in fresh]))
                batch.answers.keep_rows(self.transform.name, found[-1])
                fresh.clear()

        since = monotonic()
        try:
            for each in in_flight(asks, len(starts), self.params.concurrency):
                fresh.append(each)
                if monotonic() - since > _KEPT_EVERY_S:
                    keep()
                    since = monotonic()
        finally:
            keep()  # also where the service goes away in the middle
        return pa.concat_tables(found)

    def _kept(self, keys: pa.Array, said: Sequence[tuple[int, Sequence[Answered]]]) -> pa.Table:
        """Return answers as a table, of requests that begin at these keys."""
        mine = pa.concat_arrays([keys.slice(start, len(answers)) for start, answers in said])
        by = pa.repeat(self.transform.id, len(mine))
        columns = zip(*(each for _, answers in said for each in answers), strict=True)
        arrays = [mine, by, *(pa.array(column, pa.string()) for column in columns)]
        return pa.table(arrays, schema=KEPT)


def _count(measures: Measures, name: str, outcome: Outcome, status: int | None) -> None:
    of = "none" if status is None else f"{status // 100}xx"
    measures.count("handler_requests", 1, transform=name, outcome=outcome, status=of)


def endpoint_of(name: str, params: HandlerParams, secrets: Mapping[str, str]) -> Endpoint:
    """Return where a handler asks, with the secrets that it names, which are masked from now on.

    Raises:
        HttpUnfit: The configuration does not have one of them.
    """
    remember_settings({"secrets": secrets})
    named = {header: _secret(secret, name, secrets) for header, secret in params.secret_headers}
    return Endpoint(
        title=f"handler '{name}'",
        remedy=f"correct url, headers or secrets of relation '{name}'",
        url=params.url,
        headers={**dict(params.headers), **named},
        secret=None if params.secret is None else _secret(params.secret, name, secrets),
        timeout=params.timeout / 1000,
    )


def _secret(secret: str, name: str, secrets: Mapping[str, str]) -> str:
    if secret not in secrets:
        raise HttpUnfit(
            f"handler '{name}' needs the secret '{secret}'",
            hint=f"add secrets: {{{secret}: ${{VARIABLE}}}} to the configuration",
        )
    return secrets[secret]


def _of(kept: pa.Table) -> pa.Array:
    return kept["key"].combine_chunks()


def _head(operation: str | None) -> bytes:
    return f'{{"metadata":{{"op":{json.dumps(operation)}}},"data":'.encode()
