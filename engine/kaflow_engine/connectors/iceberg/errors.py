"""Errors of Iceberg: what each calls for."""

from kaflow_engine.errors import SinkAway, SinkUnfit


class IcebergAway(SinkAway):
    """Catalog or storage do not answer, or another writer was faster: it may heal."""


class IcebergUnfit(SinkUnfit):
    """The table, the catalog or the login are not what the pipeline needs: someone must act."""


AWAY = frozenset(
    {
        *("CommitFailedException", "CommitStateUnknownException", "WaitingForLockException"),
        *("ServerError", "ServiceUnavailableError", "RESTError"),
        *("ConnectionError", "ConnectTimeout", "ReadTimeout", "ChunkedEncodingError"),
        *("OperationalError", "InterfaceError", "OSError", "TimeoutError"),
    }
)
"""Classes of errors after which trying again may help: of pyiceberg, requests, SQLAlchemy and
pyarrow, none of which is loaded to say so."""


def is_away(error: BaseException) -> bool:
    """Tell whether trying again may help.

    >>> is_away(TimeoutError()), is_away(FileNotFoundError()), is_away(ValueError())
    (True, False, False)
    """
    return any(
        kind.__name__ in AWAY
        for kind in type(error).__mro__
        if not isinstance(error, FileNotFoundError | PermissionError | NotADirectoryError)
    )
