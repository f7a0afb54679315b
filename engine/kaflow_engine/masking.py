"""What must not be shown: passwords, keys, tokens, and credentials inside URLs.

Settings are masked by their names. Their values also turn up where no name tells what they are,
such as in the words of a library; so the values are remembered where they are read, and masked
wherever text is shown.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import cast
from urllib.parse import quote, unquote

MASK = "***"

_SECRET_NAME = re.compile(
    r"secret|passw|token|credential|access[._-]?key|api[._-]?key|private|jaas|user[._]?info"
    r"|authorization|^webhook[._].*[._]url$|^command[._].*[._]setup$|(^|[._])headers[._]|(^|[._])sasl[._]|\.key($|\.)|^key$",
    re.IGNORECASE,
)
_IN_URL = re.compile(r"(://)\S*@")
_IN_TEXT = re.compile(r"((?:password|passwd|secret|token|key)\s*=\s*)[^\s&;,]+", re.IGNORECASE)


_VALUE_NAME = re.compile(
    r"(passw(or)?d|passphrase|[._-](pass|pwd|pw)|secret|secret[._-]?key|token|api[._-]?key"
    r"|access[._-]?key|private[._-]?key|account[._]?key|(encryption|signing)[._]?key|credentials?"
    r"|jaas[._]config|pem|keystore[._]key|oauthbearer[._]config|authorization|user[._]?info)"
    r"([._-]?\d+)?$",
    re.IGNORECASE,
)
_USER_INFO = re.compile(r"://([^/@\s]*)@")
_QUOTED = re.compile(
    r"""(?:passw(?:or)?d|secret|token|pwd|(?:account|api|access)_?key)\w*\s*=\s*["']?([^"';\s]+)""",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Za-z_.]{1,15}|[0-9]{1,9}")
_WHOLE = (("headers",), ("secrets",))
"""All values of these settings are secrets, whatever they are called."""
_SHORTEST = 6
_SHORTEST_LINE = 16

_known: set[str] = set()
# of the process: an error is shown far from whoever read the configuration


def is_secret(name: str) -> bool:
    """Tell whether a setting of this name holds a secret.

    >>> is_secret("sasl.password"), is_secret("secretKey"), is_secret("security.protocol")
    (True, True, False)
    >>> is_secret("otlp.headers.x-tenant"), is_secret("http.token"), is_secret("http.token_file")
    (True, True, False)
    """
    return _SECRET_NAME.search(name) is not None and not name.endswith("_file")


def masked(name: str, value: str) -> str:
    """Return a value as it may be shown.

    >>> masked("accessKey", "AKIA"), masked("schemaRegistry", "http://me:pw@registry:8081")
    ('***', 'http://***@registry:8081')
    """
    if is_secret(name):
        return MASK
    value = without_secrets(value)
    return _IN_TEXT.sub(rf"\g<1>{MASK}", _IN_URL.sub(rf"\g<1>{MASK}@", value))


def without_secrets(text: str) -> str:
    """Return a text in which the values that are remembered are masked, and nothing else."""
    return _pattern(frozenset(_known)).sub(MASK, text) if _known else text


def remember(secrets: Iterable[str]) -> None:
    """Mask these values from now on wherever they are shown.

    What is shorter than 6 characters, one short word or a short number could be any text, and is
    left alone.
    """
    for secret in secrets:
        _known.update(form for part in _parts(secret) for form in _forms(part))


def remember_settings(settings: Mapping[str, object], path: tuple[str, ...] = ()) -> None:
    """Remember the secrets of a configuration, given as nested mappings."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            remember_settings(cast(Mapping[str, object], value), (*path, name))
        elif isinstance(value, str):
            remember(_secrets(name, value, whole=path[-1:] in _WHOLE))


def remember_environment(variables: Mapping[str, str]) -> None:
    """Remember the secrets among the variables of the environment, and those inside of them."""
    for name, value in variables.items():
        remember(_secrets(name, value, whole=False))


def _secrets(name: str, value: str, *, whole: bool) -> Iterator[str]:
    if whole or _VALUE_NAME.search(name):
        yield value
        yield value.removeprefix("Bearer ").removeprefix("Basic ")
    yield from _QUOTED.findall(value)
    for found in _USER_INFO.findall(value):
        password = found.partition(":")[2]
        yield from (found, password, unquote(password))


def _parts(secret: str) -> Iterator[str]:
    """Take the whole, and each line of a key: errors show texts on one line, or a part of them."""
    yield secret
    if "\n" in secret:
        lines = (line.strip() for line in secret.splitlines())
        yield from (line for line in lines if len(line) >= _SHORTEST_LINE and line[0] != "-")


def _forms(secret: str) -> set[str]:
    if len(secret) < _SHORTEST or _WORD.fullmatch(secret):
        return set()
    escaped = (json.dumps(secret, ensure_ascii=ascii)[1:-1] for ascii in (True, False))
    return {secret, quote(secret, safe=""), repr(secret)[1:-1], *escaped}


@lru_cache(maxsize=1)
def _pattern(known: frozenset[str]) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(text) for text in sorted(known, key=len, reverse=True)))
