"""Fetches the Java archives that Spark and the embedded services need, once per user.

What is fetched stands in `jars.toml`, each file with its SHA-256: nothing is resolved at run
time, and nothing else is accepted.
"""

import hashlib
import os
import shutil
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from kaflow_engine.errors import SourceError
from kaflow_engine.runtime.spark.cache import cache_dir, locked, write_text

Bundle = Literal["spark-kafka", "kafka-broker", "registry", "spark-delta"]
Report = Callable[[str], None]

_SECONDS = 60
"""How long one connection may stay silent."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """One file of a Maven repository and the digest that it must have."""

    coordinate: str
    """`group:artifact:version`, and `:packaging:classifier` where it is not a plain jar."""
    sha256: str

    @property
    def path(self) -> str:
        """Where it lies in a Maven repository."""
        group, name, version, packaging, classifier = self.parts
        suffix = f"-{classifier}" if classifier else ""
        return f"{group.replace('.', '/')}/{name}/{version}/{name}-{version}{suffix}.{packaging}"

    @property
    def file(self) -> str:
        """Its file name."""
        return self.path.rpartition("/")[2]

    @property
    def parts(self) -> tuple[str, str, str, str, str]:
        """Group, name, version, packaging, classifier (may be empty)."""
        group, name, version, *rest = self.coordinate.split(":")
        packaging, classifier = rest or ("jar", "")
        return group, name, version, packaging, classifier


def spark_kafka_jars() -> tuple[Path, ...]:
    """Return the jars of Spark's Kafka source, fetching them on first use."""
    return fetch("spark-kafka")


def kafka_broker_jars() -> tuple[Path, ...]:
    """Return the class path of a Kafka broker, fetching it on first use."""
    return fetch("kafka-broker")


def registry_archive() -> Path:
    """Return the archive of a schema registry with Confluent's interface (142 MB)."""
    return fetch("registry")[0]


def spark_delta_jars() -> tuple[Path, ...]:
    """Return the jars with which Spark reads Delta tables (9 MB); the engine needs none."""
    return fetch("spark-delta")


def fetch(bundle: Bundle, report: Report | None = None) -> tuple[Path, ...]:
    """Return the files of a bundle; after the first time without a look at network or content.

    Raises:
        SourceError: a file cannot be fetched, or is not the one that was pinned.
    """
    return fetch_files(bundle, artifacts(bundle), report)


def fetch_files(
    name: str, wanted: Sequence[Artifact], report: Report | None = None
) -> tuple[Path, ...]:
    """Return pinned files as `fetch` does, which are called by a name together."""
    home = _home(name, wanted)
    if not _complete(home).exists():
        with locked(home.with_suffix(".lock")):
            if not _complete(home).exists():  # another process may have done it while this waited
                _fill(home, name, wanted, report or _to_stderr)
    return tuple(home / artifact.file for artifact in wanted)


def fetched(bundle: Bundle) -> bool:
    """Say whether a bundle is complete in the cache."""
    return _complete(bundle_home(bundle)).exists()


def bundle_home(bundle: Bundle) -> Path:
    """Return the folder of a bundle; another list of artifacts has another folder."""
    return _home(bundle, artifacts(bundle))


def _home(name: str, wanted: Sequence[Artifact]) -> Path:
    content = "\n".join(f"{a.coordinate} {a.sha256}" for a in wanted)
    return cache_dir() / "jars" / f"{name}-{hashlib.sha256(content.encode()).hexdigest()[:12]}"


def _complete(home: Path) -> Path:
    return home / ".complete"


def artifacts(bundle: Bundle) -> tuple[Artifact, ...]:
    """Return what a bundle consists of."""
    return tuple(Artifact(coordinate, sha256) for coordinate, sha256 in _pinned()[bundle].items())


@cache
def _pinned() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads(
        files("kaflow_engine.runtime.spark").joinpath("jars.toml").read_text("utf-8")
    )


def _fill(home: Path, bundle: str, wanted: Sequence[Artifact], report: Report) -> None:
    home.mkdir(parents=True, exist_ok=True)
    missing = [a for a in wanted if not _intact(home / a.file, a)]
    report(f"kaflow: fetching {bundle}: {len(missing)} of {len(wanted)} files into {home}")
    with TemporaryDirectory(dir=home, prefix=".fetch-") as scratch:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(partial(_download, scratch=Path(scratch), home=home), missing))
    size = sum((home / a.file).stat().st_size for a in wanted)
    report(f"kaflow: fetched {bundle}: {size / 1e6:.0f} MB")
    write_text(_complete(home), "")


def _download(artifact: Artifact, scratch: Path, home: Path) -> None:
    from jgo.maven import MavenContext  # 0.6 s, and only needed when something is missing

    mirror = os.environ.get("DEFAULT_ARTIFACT_REPOSITORY", "").rstrip("/")
    maven = MavenContext(
        repo_cache=scratch,
        local_repos=[Path(os.environ.get("M2_REPO", Path.home() / ".m2" / "repository"))],
        remote_repos={"mirror": mirror} if mirror else None,
        timeout=_SECONDS,
    )
    group, name, version, packaging, classifier = artifact.parts
    component = maven.project(group, name).at_version(version)
    try:
        found = component.artifact(classifier=classifier, packaging=packaging).resolve()
    except (OSError, RuntimeError) as error:
        raise SourceError(
            f"cannot fetch '{artifact.coordinate}' ({type(error).__name__})",
            hint="this needs a Maven repository once: check the network, set "
            "DEFAULT_ARTIFACT_REPOSITORY to a mirror, or copy the folder "
            f"{cache_dir() / 'jars'} from a machine that has it",
        ) from error
    if not _intact(found, artifact):
        raise SourceError(
            f"'{artifact.coordinate}' at {found} is not the file that kaflow was tested with",
            hint=f"its SHA-256 should be {artifact.sha256}; remove the file, or check the mirror",
        )
    beside = scratch / artifact.file
    shutil.copyfile(found, beside)
    beside.replace(home / artifact.file)


def _intact(path: Path, artifact: Artifact) -> bool:
    if not path.exists():
        return False
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest() == artifact.sha256


def _to_stderr(line: str) -> None:
    sys.stderr.write(line + "\n")
