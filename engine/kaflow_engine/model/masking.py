"""What must not be shown: passwords, keys, tokens, and credentials inside URLs."""

import re

MASK = "***"

_SECRET_NAME = re.compile(
    r"secret|passw|token|credential|access[._]?key|api[._]?key|private|jaas|user[._]?info"
    r"|authorization|(^|[._])headers[._]|(^|[._])sasl[._]|\.key($|\.)|^key$",
    re.IGNORECASE,
)
_IN_URL = re.compile(r"(://)\S*@")
_IN_TEXT = re.compile(r"((?:password|passwd|secret|token|key)\s*=\s*)[^\s&;,]+", re.IGNORECASE)


def is_secret(name: str) -> bool:
    """Tell whether a setting of this name holds a secret.

    >>> is_secret("sasl.password"), is_secret("secretKey"), is_secret("security.protocol")
    (True, True, False)
    >>> is_secret("otlp.headers.x-tenant"), is_secret("http.token")
    (True, True)
    """
    return _SECRET_NAME.search(name) is not None


def masked(name: str, value: str) -> str:
    """Return a value as it may be shown.

    >>> masked("accessKey", "AKIA"), masked("schemaRegistry", "http://me:pw@registry:8081")
    ('***', 'http://***@registry:8081')
    """
    if is_secret(name):
        return MASK
    return _IN_TEXT.sub(rf"\g<1>{MASK}", _IN_URL.sub(rf"\g<1>{MASK}@", value))
