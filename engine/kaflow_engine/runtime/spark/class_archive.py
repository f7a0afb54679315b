"""Class data sharing archives: a JVM that maps one starts in half the time.

Java can write the classes that a program has loaded to a file when it ends, and map that file at
the next start (class data sharing). A file fits one Java and one class path; where it does not fit,
Java goes without.
"""

import os
import subprocess
import sys
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from kaflow_engine.errors import RunError
from kaflow_engine.runtime.spark.cache import cache_dir, locked
from kaflow_engine.runtime.spark.java import Java, find_java

_KEPT = 6
"""Archives that stay; each is about 150 MB."""
_SECONDS = 180
_QUIET = "-Xlog:disable"  # that an archive does not fit is no news for a person
_IN_PLACE = ("-XX:+UnlockDiagnosticVMOptions", "-XX:ArchiveRelocationMode=0")
"""Where the archive was made to lie; elsewhere each of its pages is copied to be corrected."""
_recorded: dict[Path, Path] = {}


def archive_path(name: str, java: Java, class_path: Iterable[Path]) -> Path:
    """Return where the archive of a program is, whether or not it was made.

    Args:
        name: Of the program.
        java: What runs it.
        class_path: Its jars; others, or newer ones, have another archive.
    """
    digest = sha256(f"{java.home} {java.version}".encode())
    for jar in class_path:
        about = jar.stat()
        digest.update(f"{jar} {about.st_size} {about.st_mtime_ns}\n".encode())
    return cache_dir() / "classes" / f"{name}-{digest.hexdigest()[:16]}.jsa"


def archive_options(archive: Path) -> Sequence[str]:
    """Return the options of a JVM that uses an archive, or makes it; none where there is none."""
    if (made := _recorded.get(archive)) is not None:
        return (_QUIET, f"-XX:ArchiveClassesAtExit={made}")
    if not archive.exists():
        return ()
    return (_QUIET, *_IN_PLACE, f"-XX:SharedArchiveFile={archive}")


@contextmanager
def recording(archive: Path) -> Generator[None]:
    """Make an archive of the JVM that starts, and ends, in this block."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    made = archive.with_name(f".{archive.name}.{os.getpid()}")
    _recorded[archive] = made
    try:
        yield
        if made.exists():
            made.replace(archive)
    finally:
        del _recorded[archive]
        made.unlink(missing_ok=True)
    _forget_old(archive.parent)


def spark_archive(java: Java) -> Path:
    """Return where the archive of Spark is."""
    from importlib.util import find_spec

    found = find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    jars = Path(found.origin).parent / "jars"
    return archive_path("spark-jobs", java, sorted(jars.glob("*.jar")))


def make_spark_archive() -> None:
    """Make the archive of Spark unless it is there; takes some ten seconds.

    Raises:
        RunError: Spark cannot be started.
    """
    archive = spark_archive(find_java())
    with locked(archive.parent / "lock"):
        if not archive.exists():
            command = [sys.executable, "-m", "kaflow_engine.runtime.jobs.class_archive_spark"]
            done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)
            if done.returncode:
                raise RunError("cannot start Spark", hint=done.stderr.decode(errors="replace"))


def _forget_old(folder: Path) -> None:
    archives = sorted(folder.glob("*.jsa"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in archives[_KEPT:]:
        path.unlink(missing_ok=True)
