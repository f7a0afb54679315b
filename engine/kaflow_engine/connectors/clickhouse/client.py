"""Statements to a ClickHouse server over HTTP, and its errors in our own words."""

import atexit
import json
import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from kaflow_engine.connectors.clickhouse.errors import (
    OF_LOGIN,
    OF_RIGHTS,
    OF_ROWS,
    OF_TABLE,
    ClickHouseAway,
    ClickHouseUnfit,
    RowsRefused,
    is_away,
)
from kaflow_engine.connectors.clickhouse.names import Names, name
from kaflow_engine.connectors.contract import Output
from kaflow_engine.errors import KaflowError

if TYPE_CHECKING:
    import httpx

_TIMEOUT_S = 300.0
"""How long a statement may take, such as a block while its server merges others."""
_CONNECT_S = 10.0
_WHOLE = {"wait_end_of_query": "1"}
"""An answer begins when all is done: its status then says how it went."""
_OLDEST = (23, 3)
"""The first one whose ReplacingMergeTree knows rows that are gone for good."""
_SHOWN = 400
"""Characters of an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks a server, and how its errors are raised."""

    what: str
    """Such as `output 'o'`."""
    called: object
    """The name of the connection."""
    connection: Mapping[str, str] = field(repr=False)
    rights: str
    """What a user needs."""
    changed: str
    """What helps where a table is not as it was."""
    away: type[KaflowError]
    """Of what may heal."""
    unfit: type[KaflowError]
    """Of what someone must act on."""

    @classmethod
    def of(cls, output: Output) -> "Caller":
        """Return an output as a caller."""
        return cls(
            what=f"output '{output.name}'",
            called=output.settings.get("connection"),
            connection=output.connection,
            rights=f"SELECT, INSERT, CREATE TABLE ON {name(Names(output).database)}.*",
            changed="the table is not what it was when the run began; start the pipeline again",
            away=ClickHouseAway,
            unfit=ClickHouseUnfit,
        )


class Server:
    """A server, as statements of a caller see it."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    @classmethod
    def of(cls, output: Output) -> "Server":
        """Return the server of an output."""
        return cls(Caller.of(output))

    def require_version(self, doing: str) -> None:
        """Check that the server is new enough.

        Raises:
            KaflowError: It is not, or does not answer.
        """
        ((version,),) = self.rows(doing, "SELECT version()")
        major, minor = (int(part) for part in str(version).split(".")[:2])
        if (major, minor) < _OLDEST:
            oldest = ".".join(map(str, _OLDEST))
            raise self._caller.unfit(
                f"{self._caller.what} needs ClickHouse {oldest} or newer, and this is {version}",
                hint="use a newer server",
            )

    def rows(self, doing: str, select: str) -> list[list[Any]]:
        """Return the rows of a SELECT."""
        answer = self._sent(doing, f"{select} FORMAT JSONCompactEachRow".encode())
        return [json.loads(line) for line in answer.splitlines()]

    def lines(self, doing: str, select: str) -> list[bytes]:
        """Return the lines of an answer to a SELECT that says its format, none of them empty."""
        return [line for line in self._sent(doing, select.encode()).split(b"\n") if line]

    def run(self, doing: str, statement: str, data: bytes = b"") -> None:
        """Run a statement, with the data that it takes.

        Args:
            doing: What for, as errors say it.
            statement: SQL.
            data: Behind it, in the format that it names.

        Raises:
            RowsRefused: A row of the data is the cause.
            KaflowError: The server does not answer, or cannot do it now; or it refuses.
        """
        self._sent(doing, statement.encode() + b"\n" + data, of_rows=bool(data))

    def _sent(self, doing: str, body: bytes, of_rows: bool = False) -> bytes:
        import httpx

        caller = self._caller
        url = caller.connection.get("url")
        if not url:
            raise caller.unfit(
                f"connection '{caller.called}' of {caller.what} is not in the configuration",
                hint="add it under clickhouse.connections in kaflow.yaml",
            )
        headers = {
            b"X-ClickHouse-User": caller.connection.get("user", "default").encode(),
            b"X-ClickHouse-Key": caller.connection.get("password", "").encode(),
        }
        what = f"{doing} of {caller.what} failed: "
        try:
            answer = _client(os.getpid()).post(url, params=_WHOLE, content=body, headers=headers)
        except httpx.TimeoutException as error:
            where = _place(url)
            raise caller.away(f"{what}{where} did not answer in time") from error
        except httpx.TransportError as error:
            why = f"{_place(url)} cannot be reached: {type(error).__name__}"
            raise caller.away(what + why) from error
        if answer.status_code == 200:
            return answer.content
        raise self._error(what, answer, of_rows)

    def _error(self, what: str, answer: "httpx.Response", of_rows: bool) -> Exception:
        said, code = answer.headers.get("X-ClickHouse-Exception-Code"), None
        if said is not None and said.isdecimal():
            code = int(said)
        text = _shown(answer.text) or f"the server answers {answer.status_code}"
        if of_rows and code in OF_ROWS:
            return RowsRefused(_named(text, code), text)
        if is_away(answer.status_code, code):
            return self._caller.away(what + text)
        return self._caller.unfit(what + text, hint=self._hint(code, answer.status_code))

    def _hint(self, code: int | None, status: int) -> str | None:
        connection = f"clickhouse.connections.{self._caller.called}"
        if code in OF_LOGIN or (code is None and status in (401, 403)):
            return f"correct user and password of {connection} in the configuration"
        if code in OF_RIGHTS:
            return f"run GRANT {self._caller.rights}"
        if code in OF_TABLE:
            return self._caller.changed
        if code is None:
            return f"is the address in {connection} that of ClickHouse's HTTP interface?"
        return None


def _place(url: str) -> str:
    """Return where a server is, without what may be secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _shown(text: str) -> str:
    """Return what a server says on one line, without its version and stack.

    >>> _shown("Code: 60. DB::Exception: No table. (UNKNOWN_TABLE) (version 26.9)\\n\\n0. x")
    'No table. (UNKNOWN_TABLE)'
    """
    line = " ".join(text.partition("\n\n")[0].split())
    line = re.sub(r"^(Code: \d+\. (DB::)?(Exception|NetException): )+", "", line)
    return re.sub(r" \(version [^()]*(\([^()]*\))?\)$", "", line)[:_SHOWN]


def _named(text: str, code: int | None) -> str:
    found = re.search(r"\(([A-Z_]+)\)$", text)
    return found[1] if found else f"Code {code}"


@lru_cache(maxsize=1)
def _client(process: int) -> "httpx.Client":
    """Return what keeps connections open; keyed by process, for a forked one must not share."""
    import httpx

    for logger in ("httpx", "httpcore"):  # they log addresses
        logging.getLogger(logger).setLevel(logging.WARNING)
    client = httpx.Client(timeout=httpx.Timeout(_TIMEOUT_S, connect=_CONNECT_S))
    atexit.register(client.close)
    return client
