"""The clusters of Kafka that a file names: that of its source, and others that it writes to."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import ValidationError

from kaflow_engine.errors import Location
from kaflow_engine.model.brought.settings import Setting
from kaflow_engine.model.outputs.cluster_specs import ClusterConfig
from kaflow_engine.model.spec import Path
from kaflow_engine.model.sqlflow.lowering.said import Mistakes, Said
from kaflow_engine.model.sqlflow.sink_specs import KafkaAccessSpec

_LONGEST = 64
"""Letters of the name of a cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cluster:
    name: str
    """Empty: that of topics which name none."""
    brokers: frozenset[str]
    properties: Mapping[str, str]


@dataclass(slots=True, kw_only=True)
class Clusters:
    """Those that were named so far: the first one is that of topics which name none."""

    said: Said
    pipeline: str
    mistakes: Mistakes
    settings: list[Setting] = field(default_factory=list[Setting])
    _known: list[_Cluster] = field(default_factory=list[_Cluster])
    _unknown: bool = False
    """The first one is wrong, so that no other is compared with it."""

    def of(self, access: KafkaAccessSpec, path: Path, place: str) -> str:
        """Return the name of a cluster, empty: the one of topics which name none.

        Args:
            access: Its brokers; one of them is enough to know a cluster by.
            path: Where the file says it.
            place: What it is called, if it was not named before.
        """
        brokers = frozenset(access.brokers)
        for one in self._known:
            if one.brokers & brokers:
                self._require_same_login(one, access, path)
                return one.name
        found = self._cluster(access, path)
        if found is None:
            self._unknown = self._unknown or not self._known
            return ""
        if self._unknown:
            return ""
        name = self._name(place) if self._known else ""
        self._known.append(_Cluster(name=name, brokers=brokers, properties=access.properties))
        self.settings += self._settings(name, found, path)
        return name

    def _require_same_login(self, one: _Cluster, access: KafkaAccessSpec, path: Path) -> None:
        other = {k: v for k, v in access.properties.items() if one.properties.get(k) != v}
        if other:
            self.mistakes.add(
                "these brokers are reached in another way here than above",
                self._at(path, next(iter(other))),
                "a cluster has one login in a pipeline: write the same security_protocol, ssl and "
                "sasl, or leave them out here",
            )

    def _cluster(self, access: KafkaAccessSpec, path: Path) -> ClusterConfig | None:
        try:
            return ClusterConfig.model_validate(
                {"brokers": access.brokers, "properties": access.properties}
            )
        except ValidationError as error:
            context = error.errors()[0].get("ctx", {})
            wrong = next((b for b in access.brokers if ":" not in b), ", ".join(access.brokers))
            text = str(context.get("message", "must name a broker"))
            message = text.replace("{value}", f"'{wrong}'")
            if not message.startswith("'"):
                message = f"'{'.'.join(map(str, path))}.brokers' {message}"
            at = self.said.at(*path, "brokers")
            self.mistakes.add(message, at, "write host:port, such as localhost:9092")
            return None

    def _settings(self, name: str, found: ClusterConfig, path: Path) -> list[Setting]:
        at = self.said.at(*path, "brokers")
        if name:
            return [Setting(path=("kafka", "clusters", name), value=found, at=at)]
        properties = (
            Setting(path=("kafka", "properties", key), value=value, at=self._at(path, key))
            for key, value in found.properties.items()
        )
        return [Setting(path=("kafka", "brokers"), value=found.brokers, at=at), *properties]

    def _at(self, path: Path, name: str) -> Location:
        key = name.partition(".")[0]
        return self.said.at(*path, "security_protocol" if key == "security" else key)

    def _name(self, place: str) -> str:
        """Return the name that a cluster has among those of all pipelines."""
        pipeline, place = (re.sub(r"[^A-Za-z0-9_-]+", "-", x) for x in (self.pipeline, place))
        return f"{pipeline[: _LONGEST - len(place) - 1]}-{place}"[:_LONGEST]
