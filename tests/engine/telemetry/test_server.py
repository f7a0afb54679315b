"""The port: what is answered, to whom, and what happens where it cannot be opened."""

import json
import logging
import socket
from contextlib import closing
from dataclasses import replace
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from kaflow_engine.model.config import HttpConfig
from kaflow_engine.telemetry.metrics.metrics import Metrics
from kaflow_engine.telemetry.server import serve
from tests.engine.telemetry.examples import FULL


def get(address, path, token=None, method="GET"):
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        with urlopen(Request(f"{address}{path}", headers=headers, method=method)) as found:
            return found.status, found.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


def metrics_of(*progress):
    metrics = Metrics()
    for each in progress:
        metrics.take(each)
    return metrics


@pytest.mark.parametrize(
    ("states", "live", "ready"),
    [
        ((), 200, 503),
        (("standby",), 200, 503),
        (("standby", "standby"), 200, 503),
        (("starting",), 200, 503),
        (("loading dimensions",), 200, 503),
        (("running",), 200, 200),
        (("running", "degraded"), 200, 503),
        (("running", "failed"), 200, 503),
        (("failed", "failed"), 503, 503),
    ],
)
def test_health(states, live, ready):
    known = [replace(FULL, pipeline=f"p{i}", state=state) for i, state in enumerate(states)]
    with serve(HttpConfig(port=0), metrics_of(*known)) as address:
        assert get(address, "/health/live")[0] == live
        assert get(address, "/health/ready/")[0] == ready


def test_status_says_all_that_is_known():
    with serve(HttpConfig(port=0), metrics_of(FULL)) as address:
        code, text = get(address, "/status")
    found = json.loads(text)
    assert code == 200
    assert (found["live"], found["ready"]) == (True, True)
    (pipeline,) = found["pipelines"]
    assert pipeline["lag"]["events"]["records"] == 30
    assert pipeline["lag"]["profiles"] == {"records": 0, "seconds": 0.0}
    assert pipeline["watermark"] == {
        "at": "2026-01-01T00:00:00.000+00:00",
        "held_by": {
            "topic": "events",
            "partition": 1,
            "newest": "2026-01-01T00:00:00.000+00:00",
        },
    }
    assert pipeline["verdict"]["kind"] == "compute bound"
    assert pipeline["state_size"] == {"1:profiles": {"entries": 5_000, "bytes": 123_456}}
    assert pipeline["waiting"] == {"rows": 60, "oldest_seconds": 600.0}
    assert pipeline["joins"] == {"profiles": {"rows": 200, "matched": 150}}


def test_metrics_are_text():
    with serve(HttpConfig(port=0), metrics_of(FULL)) as address:
        code, text = get(address, "/metrics?x=1")
    assert code == 200
    assert 'kaflow_batch_number{pipeline="p"} 7.0' in text


def test_a_token_is_asked_for_where_one_is_set():
    with serve(HttpConfig(port=0, token="s3cret"), metrics_of(FULL)) as address:
        assert get(address, "/health/live")[0] == 200
        for path in ("/status", "/metrics"):
            assert get(address, path)[0] == 401
            assert get(address, path, "s3cre")[0] == 401
            assert get(address, path, "s3cret")[0] == 200
        assert "s3cret" not in get(address, "/status")[1]


@pytest.mark.parametrize(
    ("path", "method", "code"),
    [
        ("/", "GET", 404),
        ("/../../etc/passwd", "GET", 404),
        ("/%2e%2e/%2e%2e/etc/passwd", "GET", 404),
        ("//status/../metrics", "GET", 404),
        ("/status", "HEAD", 200),
        *(("/status", method, 405) for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS")),
        *(("/health/live", method, 405) for method in ("TRACE", "CONNECT", "NONSENSE")),
    ],
)
def test_nothing_else_is_served(path, method, code):
    with serve(HttpConfig(port=0), metrics_of(FULL)) as address:
        found, body = get(address, path, method=method)
    assert found == code
    assert "root:" not in body
    assert (method == "HEAD") == (body == "")


def test_the_answer_says_no_version_and_is_kept_nowhere():
    with serve(HttpConfig(port=0, token="s3cret"), metrics_of(FULL)) as address:
        with pytest.raises(HTTPError) as refused:
            urlopen(f"{address}/status")
        with urlopen(f"{address}/health/live") as found:
            headers = dict(found.headers)
    refused.value.close()
    assert refused.value.headers["WWW-Authenticate"] == "Bearer"
    assert headers["Server"].strip() == "kaflow"
    assert headers["Cache-Control"] == "no-store"


def test_a_port_that_is_taken_is_replaced(caplog):
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        port = other.getsockname()[1]
        with caplog.at_level(logging.WARNING), serve(HttpConfig(port=port), metrics_of()) as found:
            assert found != f"http://127.0.0.1:{port}"
            assert get(found, "/health/live")[0] == 200
    assert f"cannot serve health and metrics on port {port}" in caplog.text


def test_another_family_of_addresses_is_served():
    with serve(HttpConfig(host="::1", port=0), metrics_of()) as address:
        assert address.startswith("http://[::1]:")
        assert get(address, "/health/live")[0] == 200


def test_a_host_that_is_not_ours_stops_nothing(caplog):
    with serve(HttpConfig(host="203.0.113.1"), metrics_of()) as address:
        assert address is None
    assert "cannot serve health and metrics" in caplog.text
