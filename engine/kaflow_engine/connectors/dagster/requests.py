"""One GraphQL request to a Dagster webserver, and what it means when the answer is another one."""

from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urlsplit

from kaflow_engine.errors import ModelError, RunError
from kaflow_engine.model.names import is_address

_UNKNOWN = object()


class DagsterAway(RunError):
    """No Dagster answers, or what answers is none."""


class DagsterRefused(RunError):
    """Dagster does not do what it is asked for."""


def without_login(url: str) -> str:
    """Return the URL of a Dagster as messages show it.

    >>> without_login("https://me:secret@dagster.shop/")
    'https://dagster.shop'

    Raises:
        ModelError: It is none.
    """
    address = url.rstrip("/")
    if not is_address(address) or "?" in address or "#" in address:
        # it is not shown: where a login in it begins and ends is not known
        hint = "it looks like http://127.0.0.1:3000; see --dagster and DAGSTER_URL"
        raise ModelError("the URL of Dagster is none", hint=hint)
    parts = urlsplit(address)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def answer_of(
    url: str, timeout: float, query: str, field: str, variables: Mapping[str, object]
) -> Any:
    """Return what Dagster says to a query of one field.

    Raises:
        ModelError: The URL is none.
        DagsterAway: No one answers, or someone else.
        DagsterRefused: It does not understand.
    """
    import httpx

    address = without_login(url)
    body = {"query": query, "variables": variables}
    try:
        answer = httpx.post(f"{url.rstrip('/')}/graphql", json=body, timeout=timeout)
    except httpx.ReadTimeout as error:
        raise DagsterAway(
            f"Dagster at {address} has not answered within {timeout:g} s",
            hint="what it was asked for may still be done: `kaflow processor list` shows it",
        ) from error
    except (httpx.RequestError, httpx.InvalidURL) as error:
        raise _away(f"no Dagster answers at {address}") from error
    if answer.status_code in (401, 403):
        raise DagsterRefused(
            f"Dagster at {address} answers with HTTP {answer.status_code}",
            hint="it wants a login: http://user:password@host, in --dagster or DAGSTER_URL",
        )
    if answer.status_code >= 500:
        raise DagsterAway(
            f"Dagster at {address} answers with HTTP {answer.status_code}",
            hint="try again; if it stays, see the log of its webserver, or of the proxy before it",
        )
    try:
        said: object = answer.json()
    except ValueError:
        said = None
    found = _field(said, field, address)
    if found is _UNKNOWN:
        raise _away(f"what answers at {address} is no Dagster")
    return found


def refused(address: str, said: Mapping[str, Any], doing: str = "refuses") -> DagsterRefused:
    """Return that Dagster does not do something, in the first line of its words."""
    return DagsterRefused(f"Dagster at {address} {doing}: {_first_line(said)}")


def _field(said: object, field: str, address: str) -> object:
    if not isinstance(said, dict):
        return _UNKNOWN
    answer = cast(Mapping[str, Any], said)
    errors = answer.get("errors")
    if isinstance(errors, list) and errors and isinstance(errors[0], dict):
        raise refused(address, cast(Mapping[str, Any], errors[0]), "does not understand")
    data = answer.get("data")
    return (
        cast(Mapping[str, Any], data).get(field, _UNKNOWN) if isinstance(data, dict) else _UNKNOWN
    )


def _first_line(said: Mapping[str, Any]) -> str:
    lines = str(said.get("message") or "").strip().splitlines()
    return lines[0] if lines else str(said.get("__typename", "it does not say why"))


def _away(said: str) -> DagsterAway:
    return DagsterAway(
        said,
        hint="start it with `dg dev -w workspace.yaml` or `make run`, or name another one with "
        "--dagster or DAGSTER_URL; without Dagster, `kaflow run FILE` runs a processor",
    )
