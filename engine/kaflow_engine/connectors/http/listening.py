"""Runs an ASGI application at a port, in a thread of its own."""

import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import uvicorn

from kaflow_engine.errors import RunError

_LEAVES_S = 5


@contextmanager
def listening(app: Any, listen: str, *, connections: int, hint: str) -> Generator[str]:
    """Answer requests to the end of the block; give the host and port where they arrive.

    Args:
        app: Answers them.
        listen: Host and port; of port 0 the system chooses one.
        connections: Most of them at a time; who comes then gets 503.
        hint: What to do where the port is taken.

    Raises:
        RunError: The port is taken, or is none of this machine.
    """
    host, _, port = listen.rpartition(":")
    try:
        opened = socket.create_server((host.strip("[]"), int(port)))
    except OSError as error:
        raise RunError(
            f"requests cannot arrive at {listen}: {(error.strerror or str(error)).lower()}",
            hint=hint,
        ) from error
    settings = uvicorn.Config(
        app,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=connections,
        timeout_graceful_shutdown=_LEAVES_S,
    )
    server = uvicorn.Server(settings)
    number = opened.getsockname()[1]
    thread = threading.Thread(
        target=server.run, args=([opened],), name=f"kaflow-http-{number}", daemon=True
    )
    with opened:
        thread.start()
        try:
            yield f"{host}:{number}"
        finally:
            server.should_exit = True
            thread.join(2 * _LEAVES_S)
