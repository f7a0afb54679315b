"""Tables of databases as their authors name them, for queries that look their rows up."""

from collections.abc import Mapping
from pathlib import Path

from kaflow_engine.duck.quoting import literal
from kaflow_engine.flow.origins.databases import (
    AttachedParams,
    DuckDBParams,
    MySQLParams,
    PostgresParams,
    SQLiteParams,
    SqlParams,
)
from kaflow_engine.model.columns import Column
from kaflow_engine.model.sources.attached_specs import (
    AttachedSpec,
    DuckDBSourceSpec,
    FileDatabaseSpec,
    MySQLSourceSpec,
    SQLiteSourceSpec,
    SqlSourceSpec,
)
from kaflow_engine.model.sources.database_specs import PostgresSourceSpec, PostgresTableSpec
from kaflow_engine.model.sources.source_spec import SourceSpec
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.sql.transforms.attached import AttachedText


def attached_text(spec: PipelineSpec, name: str) -> AttachedText | None:
    """Return what is said of a table that is looked up; None of what is read."""
    said = spec.sources.get(name)
    params = _params(spec, name, said)
    if not isinstance(said, AttachedSpec) or params is None:
        return None
    return AttachedText(name=name, params=params, refresh=said.refresh)


def attached_names(spec: PipelineSpec) -> tuple[str, ...]:
    """Return the tables of a pipeline that are looked up."""
    return tuple(name for name in spec.sources if attached_text(spec, name) is not None)


def postgres_params(said: PostgresTableSpec, columns: tuple[Column, ...]) -> PostgresParams:
    """Return a table of Postgres as a plan keeps it."""
    return PostgresParams(
        connection=said.connection,
        table=said.table_name,
        where=said.where,
        key=said.page_key,
        page_size=said.page_size,
        columns=columns,
        attached=isinstance(said, PostgresSourceSpec) and said.attached,
    )


def declared_columns(said: SourceSpec) -> tuple[Column, ...]:
    """Return the columns that an author declares of a source."""
    return tuple(Column(name, kind) for name, kind in (said.columns or {}).items())


def _params(spec: PipelineSpec, name: str, said: SourceSpec | None) -> AttachedParams | None:
    match said:
        case PostgresSourceSpec(attached=True):
            return postgres_params(said, declared_columns(said))
        case MySQLSourceSpec(attached=True):
            return MySQLParams(
                connection=said.connection,
                table=said.table_name,
                where=said.where,
                columns=declared_columns(said),
            )
        case SQLiteSourceSpec(attached=True):
            return SQLiteParams(
                path=_path(spec, name, said),
                table=said.table_name,
                where=said.where,
                columns=declared_columns(said),
            )
        case DuckDBSourceSpec(attached=True):
            return DuckDBParams(
                path=_path(spec, name, said),
                table=said.table_name,
                where=said.where,
                columns=declared_columns(said),
            )
        case SqlSourceSpec(attached=True):
            paths = {file: _from_root(spec, name, file) for file in said.files}
            return SqlParams(
                sql=_with_paths(said.sql, paths),
                files=tuple(paths.values()),
                table=said.table_name,
                columns=declared_columns(said),
            )
        case _:
            return None


def _with_paths(sql: str, paths: Mapping[str, str]) -> str:
    """Return statements that name files by where they are."""
    for file, path in paths.items():
        sql = sql.replace(literal(file), literal(path))
    return sql


def _path(spec: PipelineSpec, name: str, said: FileDatabaseSpec) -> str:
    """Return where a file is, from the root: what its author says counts from the folder of the
    file in which that stands."""
    return _from_root(spec, name, said.path)


def _from_root(spec: PipelineSpec, name: str, path: str) -> str:
    stands_in = Path(spec.place("sources", name).file)
    return str((stands_in.parent / path).absolute())
