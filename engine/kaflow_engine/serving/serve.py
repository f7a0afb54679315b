"""What is served → a server: databases looked at, SQL bound, and a port that answers."""

from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime

from kaflow_engine.connectors.http.listening import listening
from kaflow_engine.errors import KaflowError, ModelError
from kaflow_engine.model.files.yaml_file import raise_all
from kaflow_engine.model.sqlflow.lowering.commands import Attached
from kaflow_engine.model.sqlflow.serving.reading import ServeFile
from kaflow_engine.serving.checks import Serve
from kaflow_engine.serving.kept import Keeper
from kaflow_engine.serving.metrics import ServeMetrics
from kaflow_engine.serving.pool import Pool
from kaflow_engine.serving.sessions import Prepared, Session
from kaflow_engine.serving.site import Site

_CONNECTIONS = 1_000
_MB = 1_048_576


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """What time it is."""

    now: Callable[[], datetime]
    """With its offset."""
    monotonic: Callable[[], float]
    """Seconds that only go forward."""


@contextmanager
def serving(serve: Serve, clocks: Clocks) -> Generator[str]:
    """Answer requests to the end of the block; give the host and port where they arrive.

    Args:
        serve: What is served.
        clocks: Tell the time.

    Raises:
        ModelError: SQL does not fit the tables of the databases.
        SourceError: A database cannot be read.
        RunError: The port is taken.
    """
    spec = serve.file.spec.serve
    attached = _from_folder(serve.file)
    with ExitStack() as resources:
        sessions = [Session(attached, serve.readable) for _ in range(spec.pool.size)]
        for session in sessions:
            resources.callback(session.close)
        prepared = _prepared(serve, sessions[0])
        keeper = Keeper(spec.cache.max_mb * _MB, clocks.monotonic)
        pool = Pool(sessions)
        resources.callback(pool.close)
        site = Site(
            datasets=serve.datasets,
            prepared=prepared,
            tokens=serve.file.tokens,
            origins=frozenset(spec.http.cors.allowed_origins) if spec.http.cors else None,
            pool=pool,
            keeper=keeper,
            metrics=ServeMetrics(spec.pool.size, keeper) if spec.metrics.enabled else None,
            now=clocks.now,
        )
        hint = "another process may listen there; set serve.http.addr to a free port"
        place = listening(site, spec.http.addr, connections=_CONNECTIONS, hint=hint)
        yield resources.enter_context(place)


def _from_folder(file: ServeFile) -> dict[str, Attached]:
    """Return the databases, files with their paths from the folder of the file."""
    return {
        name: each
        if each.kind in ("postgres", "mysql")
        else replace(each, where=str((file.file.parent / each.where).resolve()))
        for name, each in file.attached.items()
    }


def _prepared(serve: Serve, session: Session) -> dict[tuple[str, str], Prepared]:
    found: dict[tuple[str, str], Prepared] = {}
    mistakes: list[ModelError] = []
    for dataset in serve.datasets.values():
        for grain, statement in dataset.statements.items():
            try:
                found[dataset.name, grain] = session.prepare(statement)
            except ModelError as mistake:
                mistakes.append(mistake)
            except KaflowError as error:
                error.at = error.at or statement.sql.at
                raise
    raise_all(mistakes)
    return found
