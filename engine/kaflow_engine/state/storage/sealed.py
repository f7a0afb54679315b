"""Sealed JSON: files of a batch log carry a checksum, so that damage is detected."""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, cast

from kaflow_engine.state.storage.store import Damaged


def seal(members: Mapping[str, Any]) -> bytes:
    """Return an object as JSON, with its checksum."""
    return json.dumps({**members, "checksum": _checksum(members)}).encode()


def unseal(name: str, data: bytes) -> dict[str, Any]:
    """Return what was sealed; Damaged if it was altered."""
    try:
        members = json.loads(data)
    except ValueError as error:
        raise damaged(name) from error
    if not isinstance(members, dict):
        raise damaged(name)
    members = cast(dict[str, Any], members)
    if members.pop("checksum", None) != _checksum(members):
        raise damaged(name)
    return members


def damaged(name: str) -> Damaged:
    """Return the error for a file that was altered."""
    return Damaged(f"'{name}' is damaged", hint="restore this file from a backup")


def _checksum(members: Mapping[str, Any]) -> str:
    return sha256(json.dumps(members, sort_keys=True).encode()).hexdigest()[:16]
