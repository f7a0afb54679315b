"""The port under load: whatever others do, health is answered, and no one takes it from another.

Who is slow here is slow without end, so that an answer that waited for them would never come.
"""

import select
import socket
import threading
from contextlib import ExitStack, contextmanager
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from kaflow_engine.model.config import HttpConfig
from kaflow_engine.telemetry.http_port import _ACCEPTED
from kaflow_engine.telemetry.metrics.metrics import Metrics
from kaflow_engine.telemetry.server import serve
from kaflow_engine.telemetry.site import Limits
from tests.engine.telemetry.examples import FULL

SLOW = [
    b"",
    b"GET /status HTTP/1.1\r\nX: ",
    b"GET /health/live HTTP/1.1\r\n",
    b"GET /metrics HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 200,
]
NONSENSE = [
    b"GET /" + b"a" * 70_000,
    b"\x00\xff\x16\x03\x01" * 20,
    b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 20_000,
    b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\n\r\n",
]
LARGE = 64 * 2**20
ENDLESS = 10**6
"""Seconds after which a connection of these tests would be closed for being slow."""


class Held(Metrics):
    """Metrics that are made when the test says so, and are more than any buffer holds."""

    def __init__(self):
        super().__init__()
        self.asked = threading.Semaphore(0)
        self.may_go_on = threading.Event()
        self.take(FULL)

    def text(self):
        self.asked.release()
        self.may_go_on.wait()
        return b"x" * LARGE


@contextmanager
def port(metrics, **limits):
    config = HttpConfig(port=0, token="s3cret")
    bounds = Limits(**{"asking_s": ENDLESS, "answering_s": ENDLESS, **limits})
    with serve(config, metrics, bounds) as address, ExitStack() as opened:
        host, _, number = address.removeprefix("http://").partition(":")

        def connect(sent=b""):
            found = opened.enter_context(socket.create_connection((host, int(number))))
            found.sendall(sent)
            return found

        yield address, connect


def asks_for(path):
    return f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer s3cret\r\n\r\n".encode()


def code_of(address, path):
    try:
        with urlopen(f"{address}{path}") as found:
            return found.status
    except HTTPError as error:
        with error:
            return error.code


def first_line(connection):
    """Return the code of the answer, nothing where there was none."""
    return connection.makefile("rb").readline().decode()[9:12]


def is_open(connection):
    """Return whether nothing has come, not even an end."""
    return not select.select([connection], [], [], 0)[0]


@pytest.fixture
def metrics():
    held = Held()
    yield held
    held.may_go_on.set()


@pytest.mark.parametrize("sent", SLOW)
@pytest.mark.parametrize("count", [33, 200])
def test_slow_ones_hold_nobody_up_and_are_not_cut_off(metrics, count, sent):
    with port(metrics) as (address, connect):
        slow = [connect(sent) for _ in range(count)]
        assert [code_of(address, "/health/live") for _ in range(20)] == [200] * 20
        assert [code_of(address, "/health/ready") for _ in range(20)] == [200] * 20
        assert all(is_open(each) for each in slow)


def test_connections_cost_no_threads(metrics):
    with port(metrics) as (address, connect):
        before = threading.active_count()
        slow = [connect(sent) for sent in SLOW * 40]
        assert code_of(address, "/health/live") == 200
        assert threading.active_count() == before
        assert slow


def test_of_too_many_those_that_have_not_asked_give_way(metrics):
    """The flood is larger than what may be open; those for whom a page is made stay."""
    with port(metrics, connections=160, pages=4) as (address, connect):
        scrapers = [connect(asks_for("/metrics")) for _ in range(4)]
        assert metrics.asked.acquire()
        flood = [connect(SLOW[number % len(SLOW)]) for number in range(400)]
        assert code_of(address, "/health/live") == 200
        assert flood[0].recv(1) == b""
        assert all(is_open(each) for each in scrapers)
        metrics.may_go_on.set()
        assert [first_line(each) for each in scrapers] == ["200"] * 4


def test_no_probe_that_has_asked_can_be_the_one_to_give_way():
    """Between a connection and its request others come in, at most these."""
    assert 4 * _ACCEPTED < Limits().connections - Limits().pages


@pytest.mark.parametrize("path", ["/status", "/metrics"])
def test_a_page_that_is_not_ready_holds_up_no_probe(metrics, path):
    with port(metrics) as (address, connect):
        scraper = connect(asks_for("/metrics"))
        assert metrics.asked.acquire()
        other = connect(asks_for(path))
        assert code_of(address, "/health/live") == 200
        assert code_of(address, "/health/ready") == 200
        assert is_open(scraper)
        assert is_open(other)


def test_who_does_not_read_what_was_asked_for_holds_up_no_probe(metrics):
    metrics.may_go_on.set()
    with port(metrics, pages=3) as (address, connect):
        readers = [connect(asks_for("/metrics")) for _ in range(3)]
        assert [first_line(each) for each in readers] == ["200"] * 3  # and nothing more of it
        assert code_of(address, "/health/live") == 200
        assert first_line(connect(asks_for("/metrics"))) == "503"
        readers[0].close()
        while (found := first_line(connect(asks_for("/status")))) == "503":
            pass  # until the port has seen that one reader is gone
        assert found == "200"
        assert code_of(address, "/health/live") == 200


def test_a_flood_of_requests_is_refused_and_health_is_not(metrics):
    with port(metrics, pages=2) as (address, connect):
        first = [connect(asks_for("/metrics")) for _ in range(2)]
        assert metrics.asked.acquire()
        flood = [connect(asks_for("/status")) for _ in range(150)]
        without_token = [code_of(address, "/status") for _ in range(20)]
        health = [code_of(address, "/health/live") for _ in range(20)]
        assert (set(without_token), set(health)) == ({401}, {200})
        assert {first_line(each) for each in flood} == {"503"}
        metrics.may_go_on.set()
        assert [first_line(each) for each in first] == ["200"] * 2


def test_whoever_scrapes_is_served_among_slow_ones():
    metrics = Metrics()
    metrics.take(FULL)
    with port(metrics) as (address, connect):
        slow = [connect(sent) for sent in SLOW * 10]
        for _ in range(60):
            assert first_line(connect(asks_for("/metrics"))) == "200"
            assert code_of(address, "/health/ready") == 200
        assert all(is_open(each) for each in slow)


@pytest.mark.parametrize("sent", NONSENSE)
def test_nonsense_is_answered_and_let_go(metrics, sent):
    with port(metrics) as (address, connect):
        for _ in range(40):
            one = connect()
            try:
                one.sendall(sent)
            except OSError:
                continue  # it has heard enough
        assert code_of(address, "/health/live") == 200


def test_who_never_asks_is_let_go_in_the_end(metrics):
    with port(metrics, asking_s=0.05) as (_, connect):
        assert [connect(sent).recv(1) for sent in SLOW] == [b""] * len(SLOW)


def test_who_never_reads_is_let_go_in_the_end(metrics):
    metrics.may_go_on.set()
    with port(metrics, answering_s=0.05, pages=1) as (_, connect):
        reader = connect(asks_for("/metrics"))
        assert metrics.asked.acquire()
        while first_line(connect(asks_for("/status"))) != "200":
            pass  # until its place is free
        got = sum(iter(lambda: len(reader.recv(2**20)), 0))
        assert got < LARGE
