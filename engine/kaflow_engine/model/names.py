"""Names and other short texts of specifications: what each may hold, and what to write instead."""

import re
from collections.abc import Callable, Sequence
from typing import Annotated, cast
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator
from pydantic_core import PydanticCustomError

SPEC_ERROR = "kaflow_spec"
"""Type of the errors that specifications raise themselves; context: `message`, `hint`."""


def refuse(message: str, hint: str = "") -> PydanticCustomError:
    """Build the error of a validator, in our own words; `{value}` stands for what was written."""
    return PydanticCustomError(SPEC_ERROR, "refused", {"message": message, "hint": hint})


def split_names(value: object) -> object:
    """Return the names of a text that has commas between them; a list as it is."""
    if not isinstance(value, str):
        return value
    return [part.strip() for part in value.split(",") if part.strip()]


def is_address(text: str) -> bool:
    """Tell whether a text is the URL of something that speaks HTTP.

    >>> is_address("https://[::1]:80/x"), is_address("host/x"), is_address("http://host:eighty")
    (True, False, False)
    """
    if not re.fullmatch(r"https?://[^\s/]+(/\S*)?", text, re.IGNORECASE):
        return False
    try:
        parts = urlsplit(text)
        return parts.hostname is not None and parts.port != 0
    except ValueError:  # of the port, or of brackets
        return False


def require_http(text: str, *, example: str = "https://host/path") -> str:
    """Return the URL of something that speaks HTTP; refuse what is none."""
    if not is_address(text):
        raise refuse("is not a URL", f"write it as {example}")
    return text


def has_login(url: str) -> bool:
    """Tell whether a URL holds a user or a password.

    >>> has_login("wss://me:word@host/x"), has_login("https://host/@me")
    (True, False)
    """
    return "@" in urlsplit(url).netloc


def public_url(text: str, *, instead: str) -> str:
    """Return the URL of a service that a pipeline may name; refuse one with a login.

    Args:
        text: What stands there.
        instead: Where a login belongs.
    """
    if has_login(require_http(text, example="http://host:8087/path")):
        raise refuse("has a password in it", instead)
    if "#" in text:
        raise refuse("names a part of a page", "remove '#' and what follows it")
    return text


def is_header(name: str) -> bool:
    """Tell whether a header of a request may have this name.

    >>> is_header("X-Tenant"), is_header("X Tenant")
    (True, False)
    """
    return bool(re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name))


def require_header(name: str, value: str, is_reserved: Callable[[str], bool]) -> None:
    """Refuse a header that no request can have, or that each request has of its own.

    Args:
        name: As it is written.
        value: Without what is a secret.
        is_reserved: Whether each request has a header of a name, which is in lower case.
    """
    if not is_header(name):
        raise refuse(f"cannot have a header called '{name}'", "write a name such as X-Tenant")
    if is_reserved(name.lower()):
        raise refuse(f"cannot set '{name}'", "remove it: each request has its own")
    if not re.fullmatch(r"[\t\x20-\x7e]*", value):
        hint = "write letters, digits and signs of ASCII on one line"
        raise refuse(f"has a value of '{name}' that no header can have", hint)


def _filled(text: str) -> str:
    if not text.strip():
        raise refuse("must not be empty")
    return text


def _key(value: object) -> object:
    """One column, or several; a list of one column is that column."""
    if isinstance(value, str):
        return _filled(value)
    names = list(cast(Sequence[object], value)) if isinstance(value, list | tuple) else []
    if not names or not all(isinstance(name, str) and name.strip() for name in names):
        raise refuse("must be a column, or a list of columns", "write key: <column>")
    texts = [str(name) for name in names]
    lower = [text.lower() for text in texts]
    for number, text in enumerate(texts):
        if text.lower() in lower[:number]:
            raise refuse(f"names '{text}' twice", "remove one of them")
    return texts[0] if len(texts) == 1 else tuple(texts)


TOPIC_NAMES = "use letters, digits, '.', '_' and '-', at most 249 of them"


def is_topic_name(text: str) -> bool:
    """Tell whether a topic may have this name, or a source beside topics.

    >>> is_topic_name("shop.orders"), is_topic_name("shop orders")
    (True, False)
    """
    return bool(re.fullmatch(r"[A-Za-z0-9._-]{1,249}", text)) and text not in {".", ".."}


def _topic(text: str) -> str:
    if not is_topic_name(text):
        raise refuse("{value} is not a topic name", TOPIC_NAMES)
    return text


def _target(text: str) -> str:
    if ":" in text and not re.search(r"\s", text):
        return text
    cluster, of_cluster, topic = text.partition("/")
    _topic(topic if of_cluster else text)
    return f"{_cluster(cluster)}/{topic}" if of_cluster else text


def topic_target(topic: str, cluster: str) -> str:
    """Return what a topic that is written is called among the outputs of a pipeline.

    >>> topic_target("orders", ""), topic_target("orders", "west")
    ('orders', 'west/orders')
    """
    return f"{cluster}/{topic}" if cluster else topic


def _cluster(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}", text):
        raise refuse(
            "{value} is not a name for a cluster",
            "start with a letter, a digit or '_'; use letters, digits, '_' and '-', at most 64 of "
            "them",
        )
    return text


def _name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}", text):
        raise refuse(
            "{value} is not a name for a pipeline",
            "start with a letter, a digit or '_'; use letters, digits, '.', '_' and '-', "
            "at most 200 of them",
        )
    return text


def _table(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}", text):
        raise refuse(
            "{value} is not a name for a table",
            "use letters, digits, '.', '_' and '-', at most 200 of them, and none of '.' and '-' "
            "at the start",
        )
    return text


def _group(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_]{1,200}", text):
        raise refuse(
            "{value} is not a name for a group",
            "use letters, digits and '_', at most 200 of them; Dagster takes no others",
        )
    return text


def _header_operation(text: str) -> str:
    if not re.fullmatch(r"header:\S+", text):
        raise refuse(
            "{value} does not name a header", "write header:<name of a header>, as in header:dbz.op"
        )
    return text


def _operation(text: str) -> str:
    if not re.fullmatch(r"(header|column):\S+", text):
        raise refuse(
            "{value} does not say where the change operation of a record is",
            "write header:<name of a header> or column:<name of a column>",
        )
    return text


_CRON = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
"""Least and greatest of minute, hour, day, month and weekday."""


def _is_cron(field: str, least: int, most: int) -> bool:
    parts = [re.fullmatch(r"(?:\*|(\d+)(?:-(\d+))?)(?:/[1-9]\d*)?", p) for p in field.split(",")]
    numbers = [int(number) for part in parts if part for number in part.groups() if number]
    return all(parts) and all(least <= number <= most for number in numbers)


def _cron(text: str) -> str:
    fields = text.split()
    if len(fields) != len(_CRON) or not all(map(_is_cron, fields, *zip(*_CRON, strict=True))):
        raise refuse(
            "{value} is not a schedule",
            "write five fields as cron does: minute hour day month weekday, such as '0 6 * * *'",
        )
    return text


Filled = Annotated[str, AfterValidator(_filled)]
OutputKey = Annotated[str | tuple[str, ...], BeforeValidator(_key)]
"""The column that is the key of records, or those of which it is made."""
Topic = Annotated[str, AfterValidator(_topic)]
ClusterName = Annotated[str, AfterValidator(_cluster)]
TargetName = Annotated[str, AfterValidator(_target)]
"""What an output is called: a topic, a table, `<cluster>/<topic>` or `<kind of sink>:<name>`."""
Name = Annotated[str, AfterValidator(_name)]
TableName = Annotated[str, AfterValidator(_table)]
HeaderOperation = Annotated[str, AfterValidator(_header_operation)]
"""The header of records that says what they do to rows."""
Operation = Annotated[str, AfterValidator(_operation)]
Cron = Annotated[str, AfterValidator(_cron)]
GroupName = Annotated[str, AfterValidator(_group)]
