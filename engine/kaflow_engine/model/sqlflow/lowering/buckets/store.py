"""What commands say of a store of objects: `SET s3_…` and `CREATE SECRET (TYPE s3, …)`."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from kaflow_engine.errors import Location
from kaflow_engine.model.brought.settings import Setting
from kaflow_engine.model.sqlflow.lowering.said import Mistakes, SqlText

_S3 = ("state", "rocksdb", "checkpoint", "s3")
_FIELDS = {"region": "region", "access_key_id": "access_key", "secret_access_key": "secret_key"}
_OTHERS = ("endpoint", "use_ssl", "url_style")
"""`url_style` follows from the endpoint here."""
_SECRET = re.compile(
    r"CREATE\s+(?:OR\s+REPLACE\s+)?(?:TEMPORARY\s+|PERSISTENT\s+)?SECRET\b(?:\s+IF\s+NOT\s+EXISTS)?"
    r"(?:\s+(?P<name>\w+))?\s*\((?P<options>.*)\)",
    re.IGNORECASE | re.DOTALL,
)
_OPTION = re.compile(r"\s*(?P<name>\w+)\s+(?P<value>'(?:[^']|'')*'|[\w.:-]+)\s*(?:,|$)")
_OF_SECRET = {
    "KEY_ID": "access_key_id",
    "SECRET": "secret_access_key",
    "REGION": "region",
    "ENDPOINT": "endpoint",
    "USE_SSL": "use_ssl",
    "URL_STYLE": "url_style",
}
_KNOWN = (*_OF_SECRET, "TYPE", "PROVIDER", "SCOPE")


@dataclass(slots=True)
class Store:
    """How the buckets of a file are reached, as far as it says it."""

    said: dict[str, tuple[str, Location]] = field(default_factory=dict[str, tuple[str, Location]])

    def take(self, setting: str, value: str, at: Location) -> bool:
        """Note a setting of DuckDB; False: it is none of a store."""
        name = setting.removeprefix("s3_")
        if not setting.startswith("s3_") or name not in (*_FIELDS, *_OTHERS):
            return False
        self.said[name] = (_unquoted(value), at)
        return True

    def take_secret(self, sql: SqlText, mistakes: Mistakes) -> bool:
        """Note what a CREATE SECRET says; False: the statement is none."""
        found = _SECRET.fullmatch(sql.text)
        if found is None:
            return False
        options = _options(found["options"])
        kind = _unquoted(options.get("TYPE", "")).lower() if options is not None else ""
        if options is None or kind != "s3":
            mistakes.add(
                "cannot use this secret", sql.at, "write CREATE SECRET (TYPE s3, KEY_ID '…', …)"
            )
            return True
        for name in options.keys() - set(_KNOWN):
            mistakes.add(
                f"CREATE SECRET has no option {name}", sql.at, f"there are {', '.join(_KNOWN)}"
            )
        for name in options.keys() & _OF_SECRET.keys():
            self.said[_OF_SECRET[name]] = (_unquoted(options[name]), sql.at)
        return True

    @property
    def settings(self) -> tuple[Setting, ...]:
        """What the file brings of the configuration."""
        return tuple(self._settings())

    def _settings(self) -> Iterator[Setting]:
        for name, key in _FIELDS.items():
            if name in self.said:
                value, at = self.said[name]
                yield Setting(path=(*_S3, key), value=value, at=at)
        if "endpoint" in self.said:
            host, at = self.said["endpoint"]
            yield Setting(path=(*_S3, "endpoint"), value=_url(host, self._scheme), at=at)

    @property
    def _scheme(self) -> Literal["http", "https"]:
        plain = self.said.get("use_ssl", ("true",))[0].lower() in ("false", "0", "no", "off")
        return "http" if plain else "https"


def _url(host: str, scheme: str) -> str:
    return host if "://" in host else f"{scheme}://{host}"


def _options(text: str) -> Mapping[str, str] | None:
    """Return the options of a secret by name; None: they cannot be read."""
    found, place = dict[str, str](), 0
    while place < len(text.rstrip()):
        option = _OPTION.match(text, place)
        if option is None:
            return None
        found[option["name"].upper()] = option["value"]
        place = option.end()
    return found


def _unquoted(value: str) -> str:
    text = value.strip()
    return text[1:-1].replace("''", "'") if text[:1] == "'" == text[-1:] else text
