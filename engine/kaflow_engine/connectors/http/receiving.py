"""Runs the HTTP servers of webhook sources, each in a thread of its own."""

import logging
import socket
import threading
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import uvicorn

from kaflow_engine.connectors.http.intake import Intake
from kaflow_engine.connectors.http.receiver import Hook, Receiver
from kaflow_engine.connectors.journal.folder import journal_folder
from kaflow_engine.connectors.journal.open_journals import open_journal
from kaflow_engine.errors import RunError
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.sources import WebhookParams

LOGGER = logging.getLogger("kaflow.webhook")

_LEAVES_S = 5


@contextmanager
def receiving(plan: Flow, root: Path, secrets: Mapping[str, str]) -> Generator[None]:
    """Take the requests of a plan's webhooks to the end of the block.

    Args:
        plan: The lease of its state is held.
        root: The folder of all states.
        secrets: By name.

    Raises:
        RunError: A port is taken.
        StateError: A journal cannot be written.
    """
    found = {t.name: t.connector for t in plan.sources if isinstance(t.connector, WebhookParams)}
    with ExitStack() as resources:
        ports: dict[str, dict[str, Hook]] = {}
        for name, params in found.items():
            hooks = ports.setdefault(params.listen, {})
            secret = None if params.secret is None else secrets[params.secret]
            folder = journal_folder(root, plan.pipeline, name)
            intake = Intake(resources.enter_context(open_journal(folder)))
            hooks[params.path] = Hook(params=params, intake=intake, secret=secret)
        for listen, hooks in ports.items():
            resources.enter_context(_served(listen, hooks))
        yield


@contextmanager
def _served(listen: str, hooks: Mapping[str, Hook]) -> Generator[None]:
    host, _, port = listen.rpartition(":")
    try:
        opened = socket.create_server((host.strip("[]"), int(port)))
    except OSError as error:
        raise RunError(
            f"requests cannot arrive at {listen}: {(error.strerror or str(error)).lower()}",
            hint="another process may listen there; set 'listen' of the source to a free port",
        ) from error
    settings = uvicorn.Config(
        Receiver(hooks),
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=max(hook.params.max_connections for hook in hooks.values()),
        timeout_graceful_shutdown=_LEAVES_S,
    )
    server = uvicorn.Server(settings)
    thread = threading.Thread(
        target=server.run, args=([opened],), name=f"kaflow-webhook-{port}", daemon=True
    )
    with opened:
        thread.start()
        for path in hooks:
            LOGGER.info("taking requests to http://%s%s", listen, path)
        try:
            yield
        finally:
            server.should_exit = True
            thread.join(2 * _LEAVES_S)
