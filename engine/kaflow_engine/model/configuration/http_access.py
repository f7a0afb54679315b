"""Access to the HTTP port: the token, and the rule that other hosts than loopback need one."""

from collections.abc import Callable
from ipaddress import ip_address

from kaflow_engine.errors import ModelError
from kaflow_engine.model.config import Config
from kaflow_engine.model.files.mistakes import place
from kaflow_engine.model.files.tree import Node
from kaflow_engine.model.files.variables import content

_TOKEN = ("http", "token")
_FILE = ("http", "token_file")
_HOST = ("http", "host")


def with_token(
    config: Config, tree: Node, read: Callable[[str], str]
) -> tuple[Config, list[ModelError]]:
    """Take the token from its file, and refuse a port that others reach without one.

    Args:
        config: As it is written.
        tree: What it was built from, for places.
        read: Reads a file.

    Returns:
        The configuration with the token, and what is wrong.
    """
    file, token = config.http.token_file, config.http.token
    if file is not None:
        at = place(tree, _FILE)
        if token is not None:
            message = "both 'http.token' and 'http.token_file' are given"
            return config, [ModelError(message, at, "remove one of them")]
        found = content(file, at, read)
        if isinstance(found, ModelError):
            return config, [found]
        if not found.strip():
            hint = "write one, such as `openssl rand -hex 24` prints"
            return config, [ModelError(f"the file '{file}' holds no token", at, hint)]
        http = config.http.model_copy(update={"token": found.strip()})
        origins = {**config.origins, _TOKEN: config.origin(*_FILE)}
        return config.model_copy(update={"http": http, "origins": origins}), []
    if token is None and not is_loopback(config.http.host):
        message = "'http.host' is reachable from other machines, and there is no token"
        hint = "set http.token_file or http.token, or leave http.host at 127.0.0.1"
        return config, [ModelError(message, place(tree, _HOST), hint)]
    return config, []


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches a host; of a name only `localhost` is known.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
