"""The GraphQL interface of a Dagster webserver, for streams and their switches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kaflow_engine.connectors.dagster.requests import (
    DagsterRefused,
    answer_of,
    refused,
    without_login,
)
from kaflow_engine.connectors.dagster.streams import Stream, stream_of

_STREAMS = """
{assetNodes{assetKey{path} repository{name location{name}} metadataEntries{...Value}
  assetMaterializations(limit: 1){timestamp metadataEntries{...Value}}}}
fragment Value on MetadataEntry{label
  ... on TextMetadataEntry{text} ... on IntMetadataEntry{intRepr}
  ... on FloatMetadataEntry{floatValue} ... on JsonMetadataEntry{jsonString}
  ... on MarkdownMetadataEntry{mdStr} ... on UrlMetadataEntry{url}
  ... on TimestampMetadataEntry{timestamp}}
"""
_SENSOR = """
query($sensor: SensorSelector!){sensorOrError(sensorSelector: $sensor){__typename
  ... on Sensor{sensorState{id status ticks(limit: 1){skipReason error{message}}}}
  ... on PythonError{message} ... on UnauthorizedError{message}}}
"""
_RUNS = """
query($filter: RunsFilter!){runsOrError(filter: $filter, limit: 20){__typename
  ... on Runs{results{runId status startTime}}
  ... on PythonError{message} ... on InvalidPipelineRunsFilterError{message}}}
"""
_ON = """
mutation($sensor: SensorSelector!){startSensor(sensorSelector: $sensor){__typename
  ... on PythonError{message} ... on UnauthorizedError{message}}}
"""
_OFF = """
mutation($id: String!){stopSensor(id: $id){__typename
  ... on PythonError{message} ... on UnauthorizedError{message}}}
"""
_END = """
mutation($run: String!){terminateRun(runId: $run){__typename
  ... on TerminateRunFailure{message} ... on PythonError{message}
  ... on UnauthorizedError{message}}}
"""
_LOCATIONS = """
{repositoriesOrError{__typename
  ... on RepositoryConnection{nodes{location{name}}} ... on PythonError{message}}}
"""
_RELOAD = """
mutation($location: String!){reloadRepositoryLocation(repositoryLocationName: $location){__typename
  ... on WorkspaceLocationEntry{locationOrLoadError{__typename ... on PythonError{message}}}
  ... on ReloadNotSupported{message} ... on RepositoryLocationNotFound{message}
  ... on PythonError{message} ... on UnauthorizedError{message}}}
"""

LIVE = frozenset({"QUEUED", "NOT_STARTED", "STARTING", "STARTED", "CANCELING"})
"""Statuses of runs that have not ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """A sensor as it stands."""

    id: str
    on: bool
    says: str | None = None
    """Why its last tick has started nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRun:
    """A run of a stream."""

    id: str
    status: str
    began: float | None = None
    """Epoch seconds."""

    @property
    def live(self) -> bool:
        """Tell whether it has not ended."""
        return self.status in LIVE


@dataclass(frozen=True, slots=True)
class Dagster:
    """A Dagster whose page is at a URL."""

    url: str
    timeout: float = 60.0
    """Seconds for one request; a code location takes long to load."""

    @property
    def address(self) -> str:
        """The URL without credentials, as messages show it."""
        return without_login(self.url)

    def streams(self) -> tuple[Stream, ...]:
        """Return all streams of pipelines, by name.

        Raises:
            DagsterAway: No one answers.
            DagsterRefused: It does not tell.
        """
        nodes: Sequence[Mapping[str, Any]] = self._ask(_STREAMS, "assetNodes")
        found = [stream for node in nodes if (stream := stream_of(node)) is not None]
        return tuple(sorted(found, key=lambda stream: stream.name))

    def switch(self, stream: Stream) -> Switch:
        """Return the sensor of a stream as it stands.

        Raises:
            DagsterAway: No one answers.
            DagsterRefused: There is no such sensor.
        """
        found = self._ask(_SENSOR, "sensorOrError", sensor=stream.selector)
        if found["__typename"] == "SensorNotFoundError":
            raise DagsterRefused(
                f"Dagster at {self.address} has no sensor '{stream.sensor}'",
                hint="reload its code location, in its page under Deployment",
            )
        state = self._expected("Sensor", found)["sensorState"]
        ticks: Sequence[Mapping[str, Any]] = state["ticks"]
        says = [
            tick["skipReason"] or (tick["error"] or {"message": None})["message"] for tick in ticks
        ]
        return Switch(id=state["id"], on=state["status"] == "RUNNING", says=next(iter(says), None))

    def runs(self, stream: Stream) -> tuple[StreamRun, ...]:
        """Return the newest runs of a stream, newest first.

        Raises:
            DagsterAway: No one answers.
            DagsterRefused: It does not tell: that is not the same as that there are none.
        """
        tags = [{"key": "kaflow/pipeline", "value": stream.run}]
        found = self._ask(_RUNS, "runsOrError", filter={"tags": tags})
        return tuple(
            StreamRun(id=run["runId"], status=run["status"], began=run["startTime"])
            for run in self._expected("Runs", found)["results"]
        )

    def switch_on(self, stream: Stream) -> None:
        """Turn the sensor of a stream on.

        Raises:
            DagsterAway: No one answers.
            DagsterRefused: It does not do that.
        """
        self._do(_ON, "startSensor", "Sensor", sensor=stream.selector)

    def switch_off(self, switch: Switch) -> None:
        """Turn a sensor off.

        Raises:
            DagsterAway: No one answers.
            DagsterRefused: It does not do that.
        """
        self._do(_OFF, "stopSensor", "StopSensorMutationResult", id=switch.id)

    def terminate(self, run: StreamRun) -> None:
        """End a run as the page does: it finishes its batch.

        Raises:
            DagsterAway: No one answers.
            DagsterRefused: It does not do that.
        """
        self._do(_END, "terminateRun", "TerminateRunSuccess", run=run.id)

    def reload(self, location: str | None = None) -> None:
        """Reload a code location; None: all of them.

        Raises:
            DagsterAway: No one answers.
            DagsterRefused: It does not do that, or the location cannot be loaded.
        """
        names = [location] if location is not None else self._locations()
        for name in names:
            found = self._ask(_RELOAD, "reloadRepositoryLocation", location=name)
            loaded = self._expected("WorkspaceLocationEntry", found)["locationOrLoadError"]
            if loaded is not None and loaded["__typename"] == "PythonError":
                raise refused(self.address, loaded, f"cannot load code location '{name}'")

    def _locations(self) -> list[str]:
        found = self._ask(_LOCATIONS, "repositoriesOrError")
        nodes = self._expected("RepositoryConnection", found)["nodes"]
        return list(dict.fromkeys(node["location"]["name"] for node in nodes))

    def _do(self, mutation: str, field: str, done: str, **variables: object) -> None:
        self._expected(done, self._ask(mutation, field, **variables))

    def _expected(self, kind: str, found: Mapping[str, Any]) -> Mapping[str, Any]:
        if found["__typename"] != kind:
            raise refused(self.address, found)
        return found

    def _ask(self, query: str, field: str, **variables: object) -> Any:
        return answer_of(self.url, self.timeout, query, field, variables)
