"""Configurations of SQLFlow whose messages others send, by one command: files of
`fixtures/sqlflow/live`, a websocket whose messages come in fragments, and requests that are signed
as GitHub's are (ST19, ST26)."""
# pyright: basic

import hmac
import json
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import serve

from kaflow_engine.model.config import Config
from kaflow_engine.model.configuration.with_brought import with_brought
from kaflow_engine.plan.planner.project import load_checked
from kaflow_engine.runtime.planning.prepare import prepare
from kaflow_engine.testing.services.child import free_ports
from tests.committed import read_committed

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.services]

LIVE = sorted((Path(__file__).parents[1] / "fixtures" / "sqlflow" / "live").iterdir())
SECRET = "never-to-be-printed"
TEXTS = [{"n": n, "text": "ü" * n} for n in range(3)]
ISSUES = [
    {
        "action": "opened",
        "issue": {"title": f"number {n}", "user": {"login": "octocat"}},
        "repository": {"name": "spoon-knife"},
    }
    for n in range(3)
]


def in_fragments(connection):
    """Send messages in pieces, and stay."""
    for each in TEXTS:
        text = json.dumps(each, ensure_ascii=False)
        connection.send(text[at : at + 5] for at in range(0, len(text), 5))
    try:
        connection.recv()
    except ConnectionClosed:
        return


@contextmanager
def feeding():
    with serve(in_fragments, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
        finally:
            server.shutdown()
            thread.join()


def signed(url, found):
    """Send requests as GitHub does, behind one with another signature and one without any."""
    header = "X-Hub-Signature-256"
    bodies = [json.dumps(each).encode() for each in ISSUES]
    right = [f"sha256={hmac.new(SECRET.encode(), each, 'sha256').hexdigest()}" for each in bodies]
    asked = [(bodies[0], {}), (bodies[0], {header: "sha256=00"})]
    asked += [(body, {header: sign}) for body, sign in zip(bodies, right, strict=True)]
    while len(found) < len(asked):
        body, headers = asked[len(found)]
        try:
            found.append(httpx.post(url, content=body, headers=headers).status_code)
        except httpx.ConnectError:
            time.sleep(0.2)  # as senders do: no one listens yet


def test_messages_that_others_send(broker, spark, tmp_path, unique, capsys, monkeypatch):
    from kaflow_engine.runtime.application import run_pipelines

    monkeypatch.chdir(tmp_path)
    for file in LIVE:
        (tmp_path / file.name).write_text(file.read_text())
    (port,) = free_ports(1)
    answers = []
    config = Config.model_validate(
        {
            "state": {"rocksdb": {"path": str(tmp_path / "state")}},
            "spark": {"master": "local[2]"},
        }
    )
    sender = threading.Thread(
        target=signed, args=(f"http://127.0.0.1:{port}/events", answers), daemon=True
    )
    with feeding() as feed:
        environment = {
            "SQLFLOW_KAFKA_BROKERS": broker.bootstrap,
            "SQLFLOW_UNIQUE": unique,
            "SQLFLOW_WEBSOCKET": feed,
            "SQLFLOW_WEBHOOK_ADDR": f"127.0.0.1:{port}",
            "SQLFLOW_GITHUB_WEBHOOK_SECRET": SECRET,
        }
        specs = load_checked([tmp_path], config, environment).pipelines
        config = with_brought(config, specs)
        plans = [planned.plan for planned in prepare(specs, config)]
        capsys.readouterr()
        sender.start()
        summary = run_pipelines(plans, config, max_records=3, spark=spark)
    sender.join(60)
    assert answers == [401, 403, 200, 200, 200]
    assert {each.counters["read"] for each in summary.pipelines.values()} == {3}
    printed = [line for line in capsys.readouterr().out.splitlines() if line[:1] == "{"]
    assert [json.loads(line) for line in printed] == TEXTS
    rows = read_committed(broker.settings, f"{unique}-github").to_pylist()
    made = [json.loads(row["value"]) for row in rows]  # of any partition, as they have no key
    assert sorted(made, key=lambda row: row["issue_title"]) == [
        {
            "action": "opened",
            "issue_title": f"number {n}",
            "issue_user_login": "octocat",
            "repo_name": "spoon-knife",
        }
        for n in range(3)
    ]
