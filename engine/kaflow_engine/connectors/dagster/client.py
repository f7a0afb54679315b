"""The GraphQL interface of a Dagster webserver, for streams and their switches."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

from kaflow_engine.connectors.dagster.streams import Stream, stream_of
from kaflow_engine.errors import RunError

_Answer = Mapping[str, Any]

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
  ... on Sensor{sensorState{id status ticks(limit: 1){skipReason error{message}}}}}}
"""
_RUNS = """
query($filter: RunsFilter!){runsOrError(filter: $filter, limit: 20){__typename
  ... on Runs{results{runId status startTime}}}}
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
_LOCATIONS = "{repositoriesOrError{... on RepositoryConnection{nodes{location{name}}}}}"
_RELOAD = """
mutation($location: String!){reloadRepositoryLocation(repositoryLocationName: $location){__typename
  ... on PythonError{message} ... on UnauthorizedError{message}}}
"""
_DONE = frozenset(
    {"Sensor", "StopSensorMutationResult", "TerminateRunSuccess", "WorkspaceLocationEntry"}
)

LIVE = frozenset({"QUEUED", "NOT_STARTED", "STARTING", "STARTED", "CANCELING"})
"""Statuses of runs that have not ended."""


class DagsterAway(RunError):
    """No Dagster answers, or what answers is none."""


class DagsterRefused(RunError):
    """Dagster does not do what it is asked for."""


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
    timeout: float = 30.0
    """Seconds for one request; a code location takes long to load."""

    @property
    def address(self) -> str:
        """The URL without credentials, as messages show it."""
        parts = urlsplit(self.url.rstrip("/"))
        return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()

    def streams(self) -> tuple[Stream, ...]:
        """Return all streams of pipelines, by name.

        Raises:
            DagsterAway: No one answers.
        """
        nodes: Sequence[Mapping[str, Any]] = self._ask(_STREAMS)["assetNodes"]
        found = [stream for node in nodes if (stream := stream_of(node)) is not None]
        return tuple(sorted(found, key=lambda stream: stream.name))

    def switch(self, stream: Stream) -> Switch:
        """Return the sensor of a stream as it stands.

        Raises:
            DagsterAway: No one answers.
            DagsterRefused: There is no such sensor.
        """
        found = self._ask(_SENSOR, sensor=stream.selector)["sensorOrError"]
        if found["__typename"] != "Sensor":
            raise DagsterRefused(f"Dagster at {self.address} has no sensor '{stream.sensor}'")
        state = found["sensorState"]
        ticks: Sequence[Mapping[str, Any]] = state["ticks"]
        says = [
            tick["skipReason"] or (tick["error"] or {"message": None})["message"] for tick in ticks
        ]
        return Switch(id=state["id"], on=state["status"] == "RUNNING", says=next(iter(says), None))

    def runs(self, stream: Stream) -> tuple[StreamRun, ...]:
        """Return the newest runs of a stream, newest first.

        Raises:
            DagsterAway: No one answers.
        """
        tags = [{"key": "kaflow/pipeline", "value": stream.run}]
        found = self._ask(_RUNS, filter={"tags": tags})["runsOrError"].get("results", ())
        return tuple(
            StreamRun(id=run["runId"], status=run["status"], began=run["startTime"])
            for run in found
        )

    def switch_on(self, stream: Stream) -> None:
        """Turn the sensor of a stream on.

        Raises:
            DagsterAway: No one answers.
            DagsterRefused: It does not do that.
        """
        self._do(_ON, sensor=stream.selector)

    def switch_off(self, switch: Switch) -> None:
        """Turn a sensor off.

        Raises:
            DagsterAway: No one answers.
            DagsterRefused: It does not do that.
        """
        self._do(_OFF, id=switch.id)

    def terminate(self, run: StreamRun) -> None:
        """End a run as the page does: it finishes its batch.

        Raises:
            DagsterAway: No one answers.
            DagsterRefused: It does not do that.
        """
        self._do(_END, run=run.id)

    def reload(self, location: str | None = None) -> None:
        """Load a code location anew; None: all of them.

        Raises:
            DagsterAway: No one answers.
            DagsterRefused: It does not do that.
        """
        names = [location] if location is not None else self._locations()
        for name in names:
            self._do(_RELOAD, location=name)

    def _locations(self) -> list[str]:
        nodes = self._ask(_LOCATIONS)["repositoriesOrError"].get("nodes", ())
        return list(dict.fromkeys(node["location"]["name"] for node in nodes))

    def _do(self, mutation: str, **variables: object) -> None:
        (done,) = self._ask(mutation, **variables).values()
        if done["__typename"] not in _DONE:
            said = done.get("message") or done["__typename"]
            raise DagsterRefused(f"Dagster at {self.address} refuses: {said.splitlines()[0]}")

    def _ask(self, query: str, **variables: object) -> Mapping[str, Any]:
        import httpx

        body = {"query": query, "variables": variables}
        try:
            answer = httpx.post(f"{self.url.rstrip('/')}/graphql", json=body, timeout=self.timeout)
            found = answer.json() if answer.status_code in (200, 400) else None
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise self._away(f"no Dagster answers at {self.address}") from error
        except json.JSONDecodeError:
            found = None
        if not isinstance(found, dict) or not {"data", "errors"} & {*cast(_Answer, found)}:
            raise self._away(f"what answers at {self.address} is no Dagster")
        told = cast(_Answer, found)
        if told.get("errors"):
            said = str(told["errors"][0]["message"]).splitlines()[0]
            raise DagsterRefused(f"Dagster at {self.address} does not understand: {said}")
        return told["data"]

    def _away(self, said: str) -> DagsterAway:
        return DagsterAway(
            said,
            hint="start it with `dg dev -w workspace.yaml` or `make run`, or name another one with "
            "--dagster or DAGSTER_URL; without Dagster, `kaflow run FILE` runs a processor",
        )
