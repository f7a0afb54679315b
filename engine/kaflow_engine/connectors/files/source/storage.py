"""Which kind of storage a path belongs to."""

from collections.abc import Mapping

from kaflow_engine.connectors.files.source.folder import Folders
from kaflow_engine.connectors.files.source.seen import Storage


def storage_of(path: str, connection: Mapping[str, str]) -> Storage:
    """Return where the files of a path are.

    Args:
        path: A folder, a file or a pattern.
        connection: How a store of objects is reached: `region`, `endpoint`, `access_key`,
            `secret_key`.
    """
    if "://" not in path:
        return Folders()
    from kaflow_engine.connectors.files.source.bucket import Buckets  # it takes long to load

    return Buckets(**connection)
