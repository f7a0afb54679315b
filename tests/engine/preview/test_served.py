"""A preview at the port: events of rows to who has the token, and an end to what no one takes."""

import http.client
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event
from urllib.parse import urlsplit

import pytest

from kaflow_engine.model.config import Config, HttpConfig, KafkaConfig
from kaflow_engine.model.pipelines.loader import load_pipeline
from kaflow_engine.preview import child as process
from kaflow_engine.preview.preview import Asked
from kaflow_engine.preview.rows import Shown
from kaflow_engine.preview.served import ChildLines, RunningPreviews
from kaflow_engine.telemetry.metrics.metrics import Metrics
from kaflow_engine.telemetry.previews import Wanted
from kaflow_engine.telemetry.server import Pages, serve
from kaflow_engine.telemetry.site import Limits, Request

TOKEN = "s3cret-of-port"
FILE = """
name: orders
sources:
  orders: {type: files, path: in, format: json, settle: 0s, columns: {id: BIGINT, amount: DOUBLE}}
relations:
  large: {query: "SELECT id, amount FROM orders WHERE amount > 5"}
query: SELECT id FROM large
output: {topic: ids, key: id}
"""


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.yaml").write_text(FILE)
    Path("in").mkdir()
    Path("in/a.json").write_text('{"id": 1, "amount": 7}\n{"id": 2, "amount": 1}\n')


@contextmanager
def port(token: str | None = TOKEN, limits: Limits | None = None) -> Generator[tuple[str, int]]:
    previews = RunningPreviews([load_pipeline(Path("p.yaml"), {}, None)], Config())
    with serve(HttpConfig(port=0, token=token), Metrics(), limits, previews) as address:
        found = urlsplit(address or "")
        assert found.hostname is not None
        assert found.port is not None
        yield found.hostname, found.port


@contextmanager
def asked(
    place: tuple[str, int], query: str, token: str | None = TOKEN, method: str = "GET"
) -> Generator[http.client.HTTPResponse]:
    with closing(http.client.HTTPConnection(*place, timeout=60)) as connection:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        connection.request(method, f"/preview{query}", headers=headers)
        with closing(connection.getresponse()) as answer:  # which has the socket, too
            yield answer


def test_rows_are_events() -> None:
    with port() as place, asked(place, "?from=earliest&node=large&rows=1") as answer:
        assert (answer.status, answer.headers["Content-Type"]) == (
            200,
            "text/event-stream; charset=utf-8",
        )
        text = answer.read().decode()
    begun, row, end, rest = text.split("\n\n")
    assert (begun, end, rest) == (": rows follow", 'event: end\ndata: {"rows": 1}', "")
    assert json.loads(row.removeprefix("data: ")) == {
        "node": "large",
        "kind": "relation",
        "op": "insert",
        "row": {"id": 1, "amount": 7.0},
    }


REFUSED = [
    ("?from=earliest", None, 401, "send 'Authorization: Bearer <token>'"),
    ("?from=earliest", "s3cre", 401, "send 'Authorization: Bearer <token>'"),
    ("?pipeline=order", TOKEN, 404, "unknown pipeline 'order'"),
    ("?node=lage", TOKEN, 404, "unknown node 'lage'"),
    ("?nod=large", TOKEN, 404, "unknown parameter 'nod'"),
    ("?seconds=x", TOKEN, 400, "seconds and rows are numbers"),
    ("?seconds=0", TOKEN, 400, "at most 600 seconds and 100000 rows, and some of both"),
    ("?seconds=nan", TOKEN, 400, "at most 600 seconds and 100000 rows, and some of both"),
    ("?rows=100001", TOKEN, 400, "at most 600 seconds and 100000 rows, and some of both"),
    ("?from=noon", TOKEN, 400, "from is latest or earliest"),
]


def test_what_is_refused() -> None:
    with port() as place:
        for query, token, code, says in REFUSED:
            with asked(place, query, token) as answer:
                found = json.loads(answer.read())
                assert (answer.status, found["error"]) == (code, says), query
        with asked(place, "?node=lage") as answer:
            assert json.loads(answer.read())["hint"] == "did you mean 'large'?"
        with asked(place, "", method="HEAD") as answer:
            assert (answer.status, answer.read()) == (200, b"")
        with asked(place, "", method="POST") as answer:
            assert answer.status == 405


def test_no_rows_without_a_token_to_ask_for() -> None:
    with port(token=None) as place, asked(place, "", None) as answer:
        assert answer.status == 403
        assert b"set http.token_file" in answer.read()


def test_what_goes_wrong_is_the_last_event() -> None:
    Path("in/a.json").unlink()
    Path("in").rmdir()
    with port() as place, asked(place, "?from=earliest") as answer:
        assert answer.status == 200
        _, error, rest = answer.read().decode().split("\n\n")
    assert error.startswith("event: error\ndata: ")
    assert "in" in json.loads(error.partition("data: ")[2])["error"]
    assert rest == ""


def test_only_so_many_at_a_time_and_who_leaves_makes_room() -> None:
    with port(limits=Limits(streams=1)) as place:
        with asked(place, "?seconds=600") as first:
            assert first.readline() == b": rows follow\n"
            with asked(place, "") as second:
                assert second.status == 503
        while True:
            with asked(place, "?from=earliest&rows=1") as third:
                if third.status == 200:
                    break


def test_a_process_ends_with_who_began_it() -> None:
    previews = RunningPreviews([load_pipeline(Path("p.yaml"), {}, None)], Config())
    lines = previews.lines(Wanted(pipeline="orders", seconds=600, since="earliest"))
    found = iter(lines)
    assert json.loads(next(found))["node"] in ("large", "ids")
    child = lines._child
    assert isinstance(lines, ChildLines)
    assert child is not None
    lines.close()
    rest = list(found)
    assert all(json.loads(line).get("error") is None for line in rest)
    assert child.returncode == 0
    with pytest.raises(ProcessLookupError):
        os.kill(child.pid, 0)


def test_a_process_that_is_asked_nothing_ends() -> None:
    command = [sys.executable, "-m", "kaflow_engine.preview.child"]
    found = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    assert (found.stdout, found.stderr) == (b"", b"")


def test_what_a_library_says_is_shown_without_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = Config(kafka=KafkaConfig(properties={"sasl.password": "s3cret-of-kafka"}))

    def failing(spec: object, config: Config, asked: Asked, stop: Event) -> Iterator[Shown]:
        stop.wait()
        raise RuntimeError(f"cannot use {config.kafka.properties}")

    monkeypatch.setattr(process, "preview", failing)
    request = tmp_path / "request"
    request.write_bytes(pickle.dumps((None, config, Asked())))
    with request.open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        with pytest.raises(SystemExit):
            process.main()
    shown = capsys.readouterr().err
    assert "RuntimeError: cannot use" in shown
    assert "s3cret-of-kafka" not in shown


def test_a_port_without_previews_has_no_such_page() -> None:
    request = Request("GET", "/preview", f"Bearer {TOKEN}")
    assert Pages(Metrics(), TOKEN).answer(request).code == 404
    assert Pages(Metrics(), TOKEN).answer(replace(request, authorization=None)).code == 401
