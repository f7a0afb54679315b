"""Runs the HTTP servers of webhook sources, each in a thread of its own."""

import logging
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

from kaflow_engine.connectors.http.intake import Intake
from kaflow_engine.connectors.http.listening import listening
from kaflow_engine.connectors.http.receiver import Hook, Receiver
from kaflow_engine.connectors.journal.receivers import Inlet
from kaflow_engine.flow.sources import WebhookParams

LOGGER = logging.getLogger("kaflow.webhook")

_FULL = 429
"""The status of a request that must wait for the pipeline."""


class Webhooks:
    """Takes requests; sources that share a port share a server."""

    @contextmanager
    def receiving(self, inlets: Sequence[Inlet]) -> Generator[None]:
        """Take requests to the end of the block.

        Raises:
            RunError: A port is taken.
        """
        ports: dict[str, dict[str, Hook]] = {}
        for inlet in inlets:
            params: WebhookParams = inlet.params
            secret = None if params.secret is None else inlet.secrets[params.secret]
            hook = Hook(
                params=params,
                intake=Intake(inlet.journal),
                secret=secret,
                count=partial(_count, inlet),
            )
            ports.setdefault(params.listen, {})[params.path] = hook
        with ExitStack() as resources:
            for listen, hooks in ports.items():
                resources.enter_context(_served(listen, hooks))
            yield


def _count(inlet: Inlet, status: int) -> None:
    inlet.count("receiver_requests", status=str(status))
    if status == _FULL:
        inlet.count("receiver_full")


@contextmanager
def _served(listen: str, hooks: Mapping[str, Hook]) -> Generator[None]:
    most = max(hook.params.max_connections for hook in hooks.values())
    hint = "another process may listen there; set 'listen' of the source to a free port"
    with listening(Receiver(hooks), listen, connections=most, hint=hint):
        for path in hooks:
            LOGGER.info("taking requests to http://%s%s", listen, path)
        yield
