"""Webhooks as outputs: the rows of a task, as requests."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from kaflow_engine.connectors.contract import (
    Capabilities,
    Output,
    Owner,
    Refused,
    TaskPart,
    Written,
)
from kaflow_engine.connectors.http.client import Endpoint, send
from kaflow_engine.connectors.http.webhook import CAPABILITIES
from kaflow_engine.connectors.json_rows import JsonRow, json_rows, with_row
from kaflow_engine.connectors.slots import slots_of
from kaflow_engine.connectors.unheld import UnheldRows
from kaflow_engine.model.outputs.connection_specs import WebhookConnection


@dataclass(frozen=True)
class WebhookRows(UnheldRows):
    """A task sends its rows, those of a delivery partition in their order, and keeps the answers.

    A batch that runs again sends nothing of the partitions whose answers it has. Of the others it
    sends all requests again, each with the `Idempotency-Key` that it had.
    """

    output: Output
    owner: Owner

    @property
    def capabilities(self) -> Capabilities:
        """What a webhook promises."""
        return CAPABILITIES

    def write(self, part: TaskPart) -> Written:
        """Send the rows of a task.

        Raises:
            HttpAway: The server does not answer, or cannot take requests now.
            HttpUnfit: The address or the login is not what the server wants.
        """
        endpoint = _endpoint(self.output)
        column = self.output.settings.get("op_column")
        found = json_rows(self.output, part.rows, op_column=None if column is None else str(column))
        texts = [_text(row, self.output) for row in found]
        refused: list[Refused] = []
        for slot, places in sorted(slots_of(part.rows).items()):
            name = f"{self.output.name}/{slot}"
            found = _kept(part, name, len(places))
            if found is None:
                mine = [texts[place] for place in places]
                found = self._sent(endpoint, part.batch, slot, mine)
                part.passing("rows_produced")
                _keep(part, name, len(places), found)
            part.passing("committed")
            refused += [Refused(int(places[one.row]), one.error, one.message) for one in found]
        return Written(
            rows={self.output.name: part.rows.num_rows - len(refused)},
            refused=tuple(sorted(refused, key=lambda one: one.row)),
        )

    def _sent(
        self, endpoint: Endpoint, batch: int, slot: int, texts: Sequence[str]
    ) -> list[Refused]:
        """Send the rows of a delivery partition; return those that the server does not want."""
        size = self.output.settings["batch"]
        of = (self.owner.state, self.owner.generation, self.output.name, slot, batch)
        key = "-".join(str(part) for part in of).replace(":", "-")
        found: list[Refused] = []
        for first in range(0, len(texts), int(size or 1)):
            last = min(first + int(size or 1), len(texts))
            found += _send(endpoint, key, texts, first, last, is_list=size is not None)
        return found


_LETTERS = {"insert": "i", "upsert": "u", "delete": "d"}


def _endpoint(output: Output) -> Endpoint:
    """Return where rows are sent: to an address of the output's own, as its connection says, if it
    has one."""
    url, headers = output.settings.get("url"), output.settings.get("headers")
    if url is None:
        found = Endpoint.of(str(output.settings["connection"]), output.connection)
    else:
        known = output.connection or WebhookConnection(url=str(url)).settings
        found = Endpoint.of(output.name.partition(":")[2], {**known, "url": str(url)})
        found = replace(found, remedy="correct `url` of the output")
    own: dict[str, str] = {} if headers is None else json.loads(str(headers))
    return replace(found, headers={**found.headers, **own})


def _send(
    endpoint: Endpoint, key: str, texts: Sequence[str], first: int, last: int, *, is_list: bool
) -> Iterator[Refused]:
    """Send some rows in one request; where it is not taken, each half on its own."""
    text = f"[{','.join(texts[first:last])}]" if is_list else texts[first]
    body = text.encode()
    # a batch that was made smaller, or lost records, has other rows under the same number
    refusal = send(endpoint, body, f"{key}-{first}-{last}-{sha256(body).hexdigest()[:16]}")
    if refusal is None:
        return
    if last - first == 1:
        yield Refused(first, refusal.error, refusal.message)
        return
    middle = (first + last) // 2
    yield from _send(endpoint, key, texts, first, middle, is_list=is_list)
    yield from _send(endpoint, key, texts, middle, last, is_list=is_list)


def _kept(part: TaskPart, name: str, rows: int) -> list[Refused] | None:
    """Return which rows were not taken, by an answer about these very rows; None: there is none.

    A batch that runs again has other rows where records were lost meanwhile.
    """
    answer = part.answers.kept(name)
    if answer is None or (answer["mark"], answer["rows"]) != (part.mark, rows):
        return None
    return [Refused(row, error, message) for row, error, message in answer["refused"]]


def _keep(part: TaskPart, name: str, rows: int, refused: Sequence[Refused]) -> None:
    why = [[one.row, one.error, one.message] for one in refused]
    part.answers.keep(name, {"mark": part.mark, "rows": rows, "refused": why})


def _text(row: JsonRow, output: Output) -> str:
    """Return what is sent of a row: it itself where it stays, else what happens to it; or both in
    an envelope."""
    if output.settings.get("envelope") == "metadata":
        about: dict[str, str | None] = {"op": _LETTERS.get(row.operation, row.operation)}
        if row.row is None:
            about["key"] = row.key
        return f'{{"metadata": {json.dumps(about)}, "data": {row.row or "null"}}}'
    if not output.changes and row.row is not None:
        return row.row
    return with_row({"op": row.operation, "key": row.key}, row.row or "null")
