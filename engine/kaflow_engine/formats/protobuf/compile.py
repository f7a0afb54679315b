"""Schemas as .proto text to descriptors, with protoc.

protoc runs in a process of its own: it reads files and writes what is wrong to its standard error,
and a text that it cannot bear ends that process alone. Schemas come from the registry also as
serialized file descriptors in base64, as Confluent's client for Python writes them.
"""

import base64
import binascii
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from google.protobuf import (
    any_pb2,
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    struct_pb2,
    timestamp_pb2,
    wrappers_pb2,
)
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.message import DecodeError

from kaflow_engine.errors import ModelError
from kaflow_engine.formats.decoded import shown
from kaflow_engine.formats.references import parts_of

_ROOT = "value.proto"
_SECONDS = 60.0
_OF_A_FILE = re.compile(r"[^\s:]+[.]proto:")

_WELL_KNOWN = {
    module.DESCRIPTOR.name: module.DESCRIPTOR.serialized_pb
    for module in (
        *(any_pb2, duration_pb2, empty_pb2, field_mask_pb2, struct_pb2, timestamp_pb2),
        wrappers_pb2,
    )
}


@lru_cache(maxsize=256)
def file_of(schema: str) -> FileDescriptor:
    """Return the file that a schema is, in a pool of its own.

    Raises:
        ModelError: It is no Protobuf schema; says what protoc said.
    """
    text, references = parts_of(schema)
    whole = _serialized(text, _ROOT)
    files = _compiled(text, references) if whole is None else _collected(whole, references)
    pool = descriptor_pool.DescriptorPool()
    try:
        for file in files:
            pool.Add(file)
        return pool.FindFileByName(_ROOT)
    except (TypeError, KeyError) as error:
        raise ModelError(f"not a Protobuf schema: {shown(str(error), 300)}") from error


def _serialized(text: str, name: str) -> descriptor_pb2.FileDescriptorProto | None:
    """Read a serialized descriptor; None: it is text."""
    found = descriptor_pb2.FileDescriptorProto()
    try:
        found.ParseFromString(base64.b64decode(text, validate=True))
    except (binascii.Error, DecodeError, ValueError):
        return None
    found.name = name
    return found


def _collected(
    root: descriptor_pb2.FileDescriptorProto, references: Mapping[str, str]
) -> Iterable[descriptor_pb2.FileDescriptorProto]:
    """Return a serialized file and what it imports, imports first."""
    found: dict[str, descriptor_pb2.FileDescriptorProto] = {}

    def add(file: descriptor_pb2.FileDescriptorProto) -> None:
        for name in file.dependency:
            if name not in found:
                add(_imported(name, references))
        found[file.name] = file

    add(root)
    return found.values()


def _imported(name: str, references: Mapping[str, str]) -> descriptor_pb2.FileDescriptorProto:
    if name in _WELL_KNOWN:
        return descriptor_pb2.FileDescriptorProto.FromString(_WELL_KNOWN[name])
    found = _serialized(references[name], name) if name in references else None
    if found is None:
        raise ModelError(
            f"the Protobuf schema imports '{name}', which the registry does not list for it",
            hint="register it with its references, or declare the columns of the topic",
        )
    return found


def _compiled(
    text: str, references: Mapping[str, str]
) -> Iterable[descriptor_pb2.FileDescriptorProto]:
    with TemporaryDirectory() as folder:
        here = Path(folder)
        for name, other in references.items():
            _write(here, name, other)
        _write(here, _ROOT, text)
        out = here / "descriptors"
        command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", "--include_imports"]
        done = subprocess.run(
            [*command, f"--descriptor_set_out={out}", _ROOT],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
            cwd=folder,
        )
        if done.returncode != 0:
            raise ModelError(f"not a Protobuf schema: {_said(done.stderr, folder)}")
        return descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file


def _write(folder: Path, name: str, text: str) -> None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or path.name in ("", "descriptors"):
        raise ModelError(f"'{shown(name)}' cannot be the name of a Protobuf file")
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)


def _said(stderr: str, folder: str) -> str:
    """Return what protoc says of files, without what it says of itself."""
    lines = [line.strip() for line in stderr.replace(f"{folder}/", "").splitlines()]
    errors = [line for line in lines if _OF_A_FILE.match(line) and ": warning:" not in line]
    return shown("; ".join(errors), 300) or "protoc gave no reason"
