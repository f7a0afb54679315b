"""The commands of a file: databases that they attach, and the tables that they declare."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from sqlglot import exp

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.masking import MASK, masked
from kaflow_engine.model.sqlflow.lowering.buckets.store import Store
from kaflow_engine.model.sqlflow.lowering.said import Mistakes, Placed, SqlText, listed
from kaflow_engine.model.sqlflow.lowering.statements import parsed, statements
from kaflow_engine.model.sqlflow.lowering.static import Static, files_of_command
from kaflow_engine.model.sqlflow.specs import CommandSpec

_MAPPED = ("postgres", "postgres_scanner", "mysql", "mysql_scanner", "sqlite", "sqlite_scanner")
_WITHIN = ("json", "parquet", "icu", "core_functions")
_OF_BUCKETS = ("httpfs", "aws")
"""Outputs of files go to buckets without them; what else they open is refused where it stands."""
_ATTACH = re.compile(
    r"ATTACH(?:\s+DATABASE)?(?:\s+IF\s+NOT\s+EXISTS)?\s+'(?P<what>(?:[^']|'')*)'"
    r"(?:\s+AS\s+(?P<name>\"[^\"]+\"|\w+))?(?:\s*\((?P<options>[^()]*)\))?\s*",
    re.IGNORECASE,
)
_LOAD = re.compile(r"(?:FORCE\s+)?(?:INSTALL|LOAD)\s+'?(?P<name>\w+)'?(?:\s+FROM\s+\S+)?", re.I)
_SET = re.compile(
    r"(?:SET|PRAGMA)\s+(?:GLOBAL\s+|SESSION\s+)?(?P<name>\w+)\s*(=|TO)\s*(?P<value>.*)", re.I
)
_OF_ENGINE = ("threads", "memory_limit", "max_memory", "temp_directory", "pg_connection_limit")
"""Settings of DuckDB that the engine makes itself, and that change no result."""
_SETS = re.compile(r"\b(?:SET|PRAGMA|SECRET)\b", re.IGNORECASE)
_VALUE = re.compile(r"'(?:[^']|'')*'|(?<==)\s*[^\s';]+|(?<== )[^\s';]+")
_PAIR = re.compile(r"(\w+)\s*=\s*('(?:[^'\\]|\\.)*'|\S+)")
_KINDS = ("postgres", "mysql", "sqlite", "duckdb")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attached:
    """A database that a command attaches."""

    kind: str
    where: str
    """A URL, or the path of a file."""
    at: Location


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A table that a command creates."""

    columns: Mapping[str, str]
    at: Location


@dataclass(slots=True)
class Commands:
    """What all commands say."""

    attached: dict[str, Attached] = field(default_factory=dict[str, Attached])
    """By the name in SQL, in lower case."""
    tables: dict[str, Declared] = field(default_factory=dict[str, Declared])
    """By name, in lower case."""
    made: dict[str, tuple[str, Location]] = field(default_factory=dict[str, tuple[str, Location]])
    """Tables that hold what commands put there, by name in lower case: their names, and where."""
    script: list[str] = field(default_factory=list[str])
    """The statements that make them."""
    files: list[str] = field(default_factory=list[str])
    """What these read."""
    store: Store = field(default_factory=Store)
    """How buckets are reached."""

    def static(self, name: str) -> Static | None:
        """Return a table that commands make; None: there is none of that name."""
        found = self.made.get(name.lower())
        if found is None:
            return None
        called, at = found
        files = tuple(dict.fromkeys(self.files))
        return Static(name=called, sql=";\n".join(self.script), files=files, at=at)


def read_commands(said: Placed, number: int, mistakes: Mistakes) -> Commands:
    """Return what so many commands of a file do."""
    found = Commands()
    for each in range(number):
        try:
            for statement in statements(said.sql("commands", each, "sql")):
                _take(statement, found, mistakes)
        except ModelError as mistake:
            mistakes.found.append(mistake)
    return found


def command_line(command: CommandSpec) -> str:
    """Return what is said of a command when its pipeline starts: no password, and no key.

    >>> command_line(CommandSpec(name="keys", sql="SET s3_region = 'eu'; LOAD httpfs;"))
    'executing command keys: SET s3_region = ***; LOAD httpfs;'
    """
    text = _VALUE.sub(MASK, command.sql) if _SETS.search(command.sql) else command.sql
    named = "" if command.name is None else f" {command.name}"
    return f"executing command{named}: {' '.join(masked('sql', text).split())}"


def declared_table(sql: SqlText) -> tuple[str, Declared] | None:
    """Return the table that a statement creates, with its columns; None: it does nothing else."""
    tree = parsed(sql)
    if not isinstance(tree, exp.Create) or not isinstance(tree.this, exp.Schema):
        return None
    columns = {
        each.name: each.kind.sql(dialect="duckdb")
        for each in tree.this.expressions
        if isinstance(each, exp.ColumnDef) and isinstance(each.kind, exp.DataType)
    }
    return tree.this.this.name.lower(), Declared(columns=columns, at=sql.at)


def _take(sql: SqlText, found: Commands, mistakes: Mistakes) -> None:
    first = sql.text.split(None, 1)[0].upper()
    match first:
        case "INSTALL" | "LOAD" | "FORCE":
            _load(sql, mistakes)
        case "ATTACH":
            _attach(sql, found, mistakes)
        case "SET" | "PRAGMA":
            _set(sql, found, mistakes)
        case "CREATE" if found.store.take_secret(sql, mistakes):
            return
        case "CREATE" | "INSERT" if _makes(sql, found, mistakes):
            return
        case "CREATE" | "INSERT":
            mistakes.add(
                "a command cannot make this: there are CREATE TABLE, with columns or AS SELECT, "
                "and INSERT INTO a table that a command creates",
                sql.at,
                "keep the rows in a database, and ATTACH it: handlers look its tables up",
            )
        case _:
            mistakes.add(
                f"the command {first} is not available",
                sql.at,
                "commands may ATTACH databases, and make tables of files and literals",
            )


def _makes(sql: SqlText, found: Commands, mistakes: Mistakes) -> bool:
    """Take a statement that creates a table or fills one of those before; else do nothing."""
    if (table := declared_table(sql)) is not None:
        found.tables[table[0]] = table[1]
    tree = parsed(sql)
    target = _target(tree)
    if tree is None or target is None:
        return False
    name = target.name.lower()
    if isinstance(tree, exp.Insert) and name not in found.made:
        return False
    if target.db:
        return table is not None  # a table of a database is created by who owns that
    found.files += files_of_command(tree, target, found.made, sql, mistakes)
    found.made.setdefault(name, (target.name, sql.at))
    found.script.append(sql.text)
    return True


def _target(tree: exp.Expr | None) -> exp.Table | None:
    """Return the table that a statement creates, or inserts into."""
    if not isinstance(tree, exp.Insert | exp.Create):
        return None
    if isinstance(tree, exp.Create) and tree.kind != "TABLE":
        return None
    target = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    return target if isinstance(target, exp.Table) else None


def _load(sql: SqlText, mistakes: Mistakes) -> None:
    named = _LOAD.fullmatch(sql.text)
    name = named["name"].lower() if named else sql.text
    if name not in (*_MAPPED, *_WITHIN, *_OF_BUCKETS):
        mistakes.add(
            f"the extension '{name}' of DuckDB is not available",
            sql.at,
            f"remove it; there are {listed([*_MAPPED[::2], *_WITHIN])}, without being installed",
        )


def _set(sql: SqlText, found: Commands, mistakes: Mistakes) -> None:
    named = _SET.fullmatch(sql.text)
    name = named["name"].lower() if named else ""
    if name == "timezone" and named and named["value"].strip("' \"").upper() in ("UTC", "ETC/UTC"):
        return
    if named and found.store.take(name, named["value"], sql.at):
        return
    if name not in _OF_ENGINE:
        shown = name or " ".join(sql.text.partition("=")[0].split()[1:3])  # values may be secrets
        mistakes.add(
            f"the setting '{shown}' of DuckDB cannot be changed",
            sql.at,
            "remove it; times are UTC, and of buckets there are s3_region, s3_access_key_id, "
            "s3_secret_access_key, s3_endpoint, s3_use_ssl and s3_url_style",
        )


def _attach(sql: SqlText, found: Commands, mistakes: Mistakes) -> None:
    said = _ATTACH.fullmatch(sql.text)
    if said is None:
        mistakes.add(
            "cannot read this ATTACH", sql.at, "write ATTACH '<where>' AS name (TYPE POSTGRES)"
        )
        return
    options = [part.split() for part in (said["options"] or "").upper().split(",") if part.strip()]
    kinds = [part[1].strip("'").lower() for part in options if part[0] == "TYPE" and part[1:]]
    what = said["what"].replace("''", "'")
    kind = kinds[0] if kinds else _kind_of(what)
    if kind not in _KINDS:
        mistakes.add(
            f"a database of the kind '{kind}' cannot be attached",
            sql.at,
            f"there are {listed(_KINDS)}",
        )
        return
    others = [part[0] for part in options if part[0] not in ("TYPE", "READ_ONLY")]
    if others:
        mistakes.add(f"ATTACH has no option {others[0]}", sql.at, "there are TYPE and READ_ONLY")
        return
    name = (said["name"] or "").strip('"') or re.split(r"[/\\]", what)[-1].partition(".")[0]
    where = _url(kind, what)
    if where is None:
        mistakes.add(
            f"this is not the address of a {kind} database",
            sql.at,
            f"write {'postgresql' if kind == 'postgres' else kind}://user:password@host/database",
        )
        return
    found.attached[name.lower()] = Attached(kind=kind, where=where, at=sql.at)


def _kind_of(what: str) -> str:
    scheme = what.partition(":")[0].lower()
    if scheme in ("postgres", "postgresql"):
        return "postgres"
    if scheme in ("mysql", "sqlite", "md", "ducklake", "http", "https", "s3"):
        return scheme
    return "duckdb"


def _url(kind: str, what: str) -> str | None:
    """Return where a database is: a URL, also of `key=value` pairs, or a path."""
    if kind not in ("postgres", "mysql"):
        return what.removeprefix(f"{kind}:") or None
    if "://" in what:
        return what
    pairs = {key.lower(): value.strip("'") for key, value in _PAIR.findall(what)}
    database = pairs.get("dbname") or pairs.get("database") or pairs.get("db")
    if database is None:
        return None
    user, password = pairs.get("user", ""), pairs.get("password") or pairs.get("passwd")
    login = quote(user, safe="") + (f":{quote(password, safe='')}" if password else "")
    port = f":{pairs['port']}" if "port" in pairs else ""
    scheme = "postgresql" if kind == "postgres" else "mysql"
    place = f"{pairs.get('host', 'localhost')}{port}/{quote(database, safe='')}"
    return f"{scheme}://{login}{'@' if login else ''}{place}"
