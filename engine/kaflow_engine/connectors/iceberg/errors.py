"""Errors of Iceberg: what each calls for."""

import re

from kaflow_engine.errors import SinkAway, SinkUnfit


class IcebergAway(SinkAway):
    """Catalog or storage do not answer, or another writer was faster: it may heal."""


class IcebergUnfit(SinkUnfit):
    """The table, the catalog or the login are not what the pipeline needs: someone must act."""


AWAY = frozenset(
    {
        *("CommitFailedException", "CommitStateUnknownException", "WaitingForLockException"),
        *("ServerError", "ServiceUnavailableError", "TooManyRequestsError"),
        *("AuthorizationExpiredError", "ConnectionError", "Timeout", "ChunkedEncodingError"),
        *("OperationalError", "InterfaceError", "OSError"),
    }
)
"""Classes of errors after which trying again may help: of pyiceberg, requests, SQLAlchemy and
pyarrow, none of which is loaded to say so."""
_REFUSED = re.compile(
    r"AWS Error (ACCESS_DENIED|NO_SUCH_BUCKET|INVALID_\w+|SIGNATURE_DOES_NOT_MATCH)"
)
"""What a bucket says to whoever may not use it, with an error of the class of all others."""


def is_away(error: BaseException) -> bool:
    """Tell whether trying again may help.

    >>> is_away(TimeoutError()), is_away(FileNotFoundError()), is_away(ValueError())
    (True, False, False)
    >>> is_away(OSError("AWS Error ACCESS_DENIED during PutObject")), is_away(OSError("full"))
    (False, True)
    """
    if isinstance(error, FileNotFoundError | PermissionError | NotADirectoryError):
        return False
    known = any(kind.__name__ in AWAY for kind in type(error).__mro__)
    return known and not _REFUSED.search(str(error))
