"""The library of `engine/native`: where it is, and its functions. Everything works without it."""

import ctypes
import os
import sys
from collections.abc import Mapping
from ctypes import POINTER, c_char, c_char_p, c_int, c_int32, c_int64, c_size_t, c_void_p
from functools import cache
from pathlib import Path

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException

from kaflow_engine.connectors.kafka.errors import raise_settings

VARIABLE = "KAFLOW_NATIVE"
"""Environment variable: the path of the library, or `off`."""
_VERSION = 2
"""`kaflow_native_version` of the functions as they are used here."""
_INVALID = -186
_SUFFIX = "dylib" if sys.platform == "darwin" else "so"


class Range(ctypes.Structure):
    """A range that a reader is asked for."""

    _fields_ = (
        ("topic", c_char_p),
        ("partition", c_int32),
        ("start", c_int64),
        ("end", c_int64),
    )


class BinaryView(ctypes.Structure):
    """Where the buffers of a column of texts or bytes are."""

    _fields_ = (
        ("ends", c_void_p),
        ("data", c_void_p),
        ("size", c_int64),
        ("valid", c_void_p),
        ("nulls", c_int64),
    )


class View(ctypes.Structure):
    """Where the buffers of records are."""

    _fields_ = (
        ("rows", c_int64),
        ("offset", c_void_p),
        ("timestamp", c_void_p),
        ("key", BinaryView),
        ("value", BinaryView),
        ("header_ends", c_void_p),
        ("headers", c_int64),
        ("header_key", BinaryView),
        ("header_value", BinaryView),
    )


class Column(ctypes.Structure):
    """Where the buffers of a column of texts, bytes or lists are, and its first row in them."""

    _fields_ = (
        ("ends", c_void_p),
        ("data", c_void_p),
        ("valid", c_void_p),
        ("first", c_int64),
    )


class Headers(ctypes.Structure):
    """Where headers of rows are."""

    _fields_ = (("lists", Column), ("key", Column), ("value", Column))


class Rows(ctypes.Structure):
    """Where rows are that a producer takes; null: all are for the first topic, the key decides
    about the partition, or there are no headers."""

    _fields_ = (
        ("rows", c_int64),
        ("topics", POINTER(c_char_p)),
        ("topic", c_void_p),
        ("partition", c_void_p),
        ("timestamp", c_void_p),
        ("key", Column),
        ("value", Column),
        ("headers", POINTER(Headers)),
    )


class Failure(ctypes.Structure):
    """Why a call failed; code 0: it did not."""

    _fields_ = (
        ("code", c_int),
        ("fatal", c_int),
        ("retriable", c_int),
        ("aborts", c_int),
        ("words", c_char * 512),
    )


_OPEN = (c_char_p, POINTER(c_char_p), c_size_t, c_char_p, c_size_t)
_FUNCTIONS = {
    "kaflow_native_version": (c_int, ()),
    "kaflow_reader_open": (c_void_p, _OPEN),
    "kaflow_reader_begin": (c_int, (c_void_p, POINTER(Range), c_size_t)),
    "kaflow_reader_fill": (c_int, (c_void_p, c_size_t, c_size_t, c_int)),
    "kaflow_reader_chunk": (POINTER(View), (c_void_p, c_size_t)),
    "kaflow_chunk_free": (None, (POINTER(View),)),
    "kaflow_reader_end": (None, (c_void_p,)),
    "kaflow_reader_report": (c_int, (c_void_p, c_char_p, c_size_t)),
    "kaflow_reader_close": (None, (c_void_p,)),
    "kaflow_producer_open": (c_void_p, _OPEN),
    "kaflow_producer_produce": (
        c_size_t,
        (c_void_p, POINTER(Rows), c_size_t, POINTER(Failure)),
    ),
    "kaflow_producer_reach": (c_int, (c_void_p, c_int)),
    "kaflow_producer_init": (None, (c_void_p, c_int, POINTER(Failure))),
    "kaflow_producer_begin": (None, (c_void_p, POINTER(Failure))),
    "kaflow_producer_commit": (None, (c_void_p, c_int, POINTER(Failure))),
    "kaflow_producer_abort": (None, (c_void_p, c_int, POINTER(Failure))),
    "kaflow_producer_flush": (None, (c_void_p, c_int)),
    "kaflow_producer_poll": (None, (c_void_p, c_int)),
    "kaflow_producer_waiting": (c_int, (c_void_p,)),
    "kaflow_producer_purge": (None, (c_void_p,)),
    "kaflow_producer_report": (c_int, (c_void_p, c_char_p, c_size_t, POINTER(c_int))),
    "kaflow_producer_refusal": (c_int, (c_void_p, c_char_p, c_size_t, POINTER(c_size_t))),
    "kaflow_producer_close": (None, (c_void_p,)),
}


@cache
def library() -> ctypes.CDLL | None:
    """Return the library; None: it is not installed, is of another version, or is turned off."""
    path = library_path()
    if path is None or librdkafka_path() is None:
        return None
    try:
        found = ctypes.CDLL(str(path))
        version: int = found.kaflow_native_version()
    except (OSError, AttributeError):
        return None
    if version != _VERSION:
        return None
    for name, (returned, taken) in _FUNCTIONS.items():
        function = getattr(found, name)
        function.restype, function.argtypes = returned, taken
    return found


def library_path() -> Path | None:
    """Return where the library is; None: it is not installed, or turned off."""
    said = os.environ.get(VARIABLE)
    if said == "off":
        return None
    path = Path(said) if said else Path(sys.prefix, "lib", "kaflow", f"libkaflow_native.{_SUFFIX}")
    return path if path.is_file() else None


def librdkafka_path() -> Path | None:
    """Return where the librdkafka is that Python's client brings; None: it brings none."""
    folder = Path(confluent_kafka.__file__).parent
    places = (folder.parent / "confluent_kafka.libs", folder / ".dylibs")
    return next((path for place in places for path in sorted(place.glob("librdkafka*"))), None)


def open_handle(opening: str, settings: Mapping[str, object]) -> int:
    """Return what a function of the library has opened.

    Args:
        opening: The function.
        settings: In librdkafka's names.

    Raises:
        ModelError: Settings that the client refuses.
    """
    texts = [_text(each).encode() for pair in settings.items() for each in pair]
    words = ctypes.create_string_buffer(512)
    found: int | None = getattr(library(), opening)(
        str(librdkafka_path()).encode(),
        (c_char_p * len(texts))(*texts),
        len(settings),
        words,
        len(words),
    )
    if not found:
        raise_settings(KafkaException(KafkaError(_INVALID, words.value.decode())))
    return found


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
