"""The receiver of webhook sources: what a sender is told, and that it holds."""

import hashlib
import hmac
import json
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest

from kaflow_engine.connectors.journal.folder import journal_folder
from kaflow_engine.connectors.journal.journal import Journal
from kaflow_engine.connectors.journal.open_journals import written_here
from kaflow_engine.connectors.journal.receivers import receiving
from kaflow_engine.connectors.journal.source import JournalSource
from kaflow_engine.errors import RunError, StateError
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.sources import WebhookParams
from kaflow_engine.testing.services.child import free_ports

pytestmark = pytest.mark.slow

SECRET = "never to be printed"
SIGNED = "X-Hub-Signature-256"


def params(port: int, path: str = "/orders", secret: str | None = None) -> WebhookParams:
    return WebhookParams(
        listen=f"127.0.0.1:{port}",
        path=path,
        secret=secret,
        signature_header=SIGNED,
        signature_prefix="sha256=",
        idempotency_header="Idempotency-Key",
        max_bytes=100,
        max_connections=200,
        max_backlog=1_000,
    )


def plan(**sources: WebhookParams) -> Flow:
    named = [SimpleNamespace(name=name, connector=each) for name, each in sources.items()]
    return cast(Flow, SimpleNamespace(name="p", pipeline="p", sources=named))


@contextmanager
def taking(root: Path, hook: WebhookParams) -> Generator[httpx.Client]:
    with (
        receiving(plan(s=hook), root, {"shop": SECRET}, 0),
        httpx.Client(base_url=f"http://{hook.listen}") as client,
    ):
        yield client


def values(root: Path) -> list[Any]:
    source = JournalSource(name="s", folder=journal_folder(root, "p", "s"))
    found = source.read(source.start("earliest"), source.latest())
    return [json.loads(value) for value in found["value"].to_pylist()]


def signature(body: bytes, secret: str = SECRET) -> dict[str, str]:
    return {SIGNED: f"sha256={hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}"}


BODY = b'{"n":1}'


@pytest.mark.parametrize(
    ("request_of", "status", "said"),
    [
        ({"headers": signature(BODY)}, 200, {"status": "received", "offset": 0}),
        ({}, 401, {"error": f"the header {SIGNED} is missing"}),
        ({"headers": signature(BODY, "guessed")}, 403, {"error": "the signature is wrong"}),
        ({"headers": signature(b"{}")}, 403, {"error": "the signature is wrong"}),
        ({"headers": {SIGNED: "sha256=ü".encode()}}, 403, {"error": "the signature is wrong"}),
        ({"method": "GET", "content": None}, 405, {"error": "send it with POST"}),
        ({"url": "/others"}, 404, {"error": "no source has this path"}),
        (
            {"content": b'{"n":', "headers": signature(b'{"n":')},
            400,
            {
                "error": "the body is no JSON value: Expecting value: line 1 column 6 (char 5)",
            },
        ),
        ({"content": b" " * 101}, 413, {"error": "the body has more than 100 bytes"}),
        (
            {"content": [b" " * 60, b" " * 60]},
            413,
            {"error": "the body has more than 100 bytes"},
        ),
    ],
    ids=str,
)
def test_what_a_sender_is_told(
    tmp_path: Path, request_of: dict[str, Any], status: int, said: dict[str, Any]
) -> None:
    """Who does not sign gets 401, who signs otherwise 403, all others 200 (ST19)."""
    given = {"method": "POST", "url": "/orders", "content": BODY, **request_of}
    if isinstance(given["content"], list):
        given["content"] = iter(given["content"])  # sent in chunks, without a length
    with taking(tmp_path, params(free_ports(1)[0], secret="shop")) as client:
        answer = client.request(**given)
        assert (answer.status_code, answer.json()) == (status, said)
        assert values(tmp_path) == ([{"n": 1}] if status == 200 else [])


def test_requests_that_are_sent_again(tmp_path: Path) -> None:
    hook = params(free_ports(1)[0])
    for _ in range(2):  # in one process, and in the next
        with taking(tmp_path, hook) as client:
            again = [
                client.post("/orders", content=BODY, headers={"Idempotency-Key": key}).json()
                for key in ("a", "a", "b")
            ]
    assert again == [{"status": "received", "duplicate": True}] * 3
    assert values(tmp_path) == [{"n": 1}] * 2


def test_many_at_once_have_offsets_of_their_own(tmp_path: Path) -> None:
    with taking(tmp_path, params(free_ports(1)[0])) as client, ThreadPoolExecutor(20) as threads:

        def send(n: int) -> int:
            keyed = {"Idempotency-Key": str(n // 2)} if n < 40 else {}
            answer = client.post("/orders", json={"n": n}, headers=keyed).json()
            return -1 if answer.get("duplicate") else answer["offset"]

        offsets = list(threads.map(send, range(400)))
    written = values(tmp_path)
    assert sorted(offsets) == [-1] * 20 + list(range(380))
    assert all(written[offset] == {"n": n} for n, offset in enumerate(offsets) if offset >= 0)


def test_a_pipeline_that_is_behind_lets_senders_wait(tmp_path: Path) -> None:
    hook = replace(params(free_ports(1)[0]), max_backlog=2)
    with taking(tmp_path, hook) as client:
        answers = [client.post("/orders", content=BODY) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200, 200, 429]
        assert answers[2].headers["retry-after"] == "5"
        folder = journal_folder(tmp_path, "p", "s")
        JournalSource(name="s", folder=folder).forget({0: 1}, 0)
        assert client.post("/orders", content=BODY).status_code == 200


def test_what_is_measured_of_requests_and_of_the_journal(tmp_path: Path) -> None:
    hook = replace(params(free_ports(1)[0]), max_backlog=2)
    with receiving(plan(s=hook), tmp_path, {}, 10) as received:
        with httpx.Client(base_url=f"http://{hook.listen}") as client:
            for body in (b"no", BODY, BODY, BODY):
                client.post("/orders", content=body)
        found = {(s.name, *(v for _, v in s.labels)): m.value for s, m in received().items()}
    assert found.pop(("journal_bytes", "s")) > 2 * len(BODY)
    assert found == {
        ("receiver_requests", "s", "400"): 1,
        ("receiver_requests", "s", "200"): 2,
        ("receiver_requests", "s", "429"): 1,
        ("receiver_full", "s"): 1,
        ("receiver_failures", "s"): 0,
        ("receiver_records", "s"): 2,
        ("receiver_bytes", "s"): 2 * len(BODY),
        ("journal_waiting", "s"): 2,
        ("journal_records", "s"): 2,
    }


def test_a_disk_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(journal: Journal, *about: object) -> int:
        raise StateError("no space left on device")

    with taking(tmp_path, params(free_ports(1)[0])) as client:
        with monkeypatch.context() as patched:
            patched.setattr(Journal, "append", full)
            answer = client.post("/orders", content=BODY, headers={"Idempotency-Key": "a"})
            assert answer.status_code == 503
        again = client.post("/orders", content=BODY, headers={"Idempotency-Key": "a"})
        assert again.json()["offset"] == 0
    assert written_here(journal_folder(tmp_path, "p", "s")) is None


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    hook = params(free_ports(1)[0])
    with (
        taking(tmp_path / "1", hook),
        pytest.raises(RunError, match=r"requests cannot arrive at .*: address already in use"),
        receiving(plan(s=hook), tmp_path / "2", {}, 0),
    ):
        pass
