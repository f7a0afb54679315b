"""A Dagster instance that runs, spoken to by GraphQL as its own page does."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.request import Request, urlopen

REPOSITORY = {"repositoryName": "__repository__", "repositoryLocationName": "kaflow"}
ANSWERS_S = 120.0
"""A page that shows many partitions takes long where all streams have two processors."""

_LOCATIONS = """
{workspaceOrError{... on Workspace{locationEntries{name loadStatus locationOrLoadError{
  __typename ... on PythonError{message}}}}}}
"""
_RELOAD = """
mutation($location: String!){
  reloadRepositoryLocation(repositoryLocationName: $location){__typename}}
"""
_SENSORS = """
query($repository: RepositorySelector!){sensorsOrError(repositorySelector: $repository){
  ... on Sensors{results{name}}}}
"""
_SENSOR = """
query($sensor: SensorSelector!){sensorOrError(sensorSelector: $sensor){... on Sensor{
  sensorState{id status ticks(limit: 5){status timestamp skipReason runKeys error{message}}}}}}
"""
_PARTITIONS = """
query($key: AssetKeyInput!){assetNodeOrError(assetKey: $key){
  ... on AssetNode{partitionStats{numMaterialized}}}}
"""
_SCHEDULES = """
query($repository: RepositorySelector!){schedulesOrError(repositorySelector: $repository){
  ... on Schedules{results{name}}}}
"""
_SCHEDULE_ON = """
mutation($schedule: ScheduleSelector!){startSchedule(scheduleSelector: $schedule){__typename}}
"""
_START = "mutation($sensor: SensorSelector!){startSensor(sensorSelector: $sensor){__typename}}"
_STOP = "mutation($id: String!){stopSensor(id: $id){__typename}}"
_RUNS = """
query($filter: RunsFilter!){runsOrError(filter: $filter, limit: 20){
  ... on Runs{results{runId jobName status startTime endTime tags{key value}}}}}
"""
_MATERIALIZED = """
{assetNodes{assetKey{path} assetMaterializations(limit: 1){timestamp}}}
"""
_GROUPS = "{assetNodes{groupName assetKey{path}}}"
_LAUNCH = """
mutation($params: ExecutionParams!){launchRun(executionParams: $params){
  __typename ... on LaunchRunSuccess{run{runId}} ... on PythonError{message}}}
"""
_TERMINATE = """
mutation($run: String!){terminateRun(runId: $run){__typename ... on PythonError{message}}}
"""


class BrokenLocation(Exception):
    """The code location cannot be loaded; holds Dagster's words."""


@dataclass(frozen=True, slots=True)
class Instance:
    """The one whose page is at a port of this machine."""

    port: int

    @property
    def address(self) -> str:
        """Of its page."""
        return f"http://127.0.0.1:{self.port}"

    def ask(self, query: str, **variables: object) -> Mapping[str, Any]:
        """Ask something.

        Raises:
            OSError: It does not answer.
            ValueError: It does not understand.
        """
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = Request(f"{self.address}/graphql", body, {"content-type": "application/json"})
        with urlopen(request, timeout=ANSWERS_S) as answer:
            found = json.load(answer)
        if "errors" in found:
            raise ValueError(str(found["errors"]))
        return found["data"]

    def answers(self) -> bool:
        """Tell whether it is there."""
        try:
            return bool(self.ask("{version}"))
        except OSError:
            return False

    def has_loaded(self) -> bool:
        """Tell whether its code location is loaded.

        Raises:
            BrokenLocation: It cannot be.
        """
        try:
            entries = self.ask(_LOCATIONS)["workspaceOrError"]["locationEntries"]
        except (OSError, KeyError):
            return False
        for entry in entries:
            error = entry["locationOrLoadError"]
            if error and error["__typename"] == "PythonError":
                raise BrokenLocation(error["message"])
        return [entry["loadStatus"] for entry in entries] == ["LOADED"]

    def reload(self) -> None:
        """Load the code location again, as the button in the page does."""
        self.ask(_RELOAD, location=REPOSITORY["repositoryLocationName"])

    def sensors(self) -> list[str]:
        """Return the names of all sensors."""
        found = self.ask(_SENSORS, repository=REPOSITORY)
        return [each["name"] for each in found["sensorsOrError"]["results"]]

    def switch_on(self, sensor: str) -> None:
        """Start a sensor."""
        self.ask(_START, sensor={**REPOSITORY, "sensorName": sensor})

    def switch_off(self, sensor: str) -> None:
        """Stop a sensor."""
        self.ask(_STOP, id=self._state(sensor)["id"])

    def schedules(self) -> list[str]:
        """Return the names of all schedules."""
        found = self.ask(_SCHEDULES, repository=REPOSITORY)
        return [each["name"] for each in found["schedulesOrError"]["results"]]

    def schedule_on(self, schedule: str) -> None:
        """Start a schedule."""
        self.ask(_SCHEDULE_ON, schedule={**REPOSITORY, "scheduleName": schedule})

    def ticks(self, sensor: str) -> Sequence[Mapping[str, Any]]:
        """Return the last ticks of a sensor, newest first."""
        return self._state(sensor)["ticks"]

    def runs(self, tags: Mapping[str, str]) -> Sequence[Mapping[str, Any]]:
        """Return the newest runs with these tags, newest first."""
        wanted = [{"key": name, "value": text} for name, text in tags.items()]
        return self.ask(_RUNS, filter={"tags": wanted})["runsOrError"]["results"]

    def materialized(self) -> set[str]:
        """Return the keys of assets that have a materialization, their parts joined by slashes."""
        nodes = self.ask(_MATERIALIZED)["assetNodes"]
        return {"/".join(n["assetKey"]["path"]) for n in nodes if n["assetMaterializations"]}

    def groups(self) -> dict[str, set[str]]:
        """Return the asset groups, each with the keys of its assets, joined by slashes."""
        found: dict[str, set[str]] = {}
        for node in self.ask(_GROUPS)["assetNodes"]:
            found.setdefault(node["groupName"], set()).add("/".join(node["assetKey"]["path"]))
        return found

    def launch(self, job: str) -> None:
        """Start a run of a job.

        Raises:
            ValueError: It could not be launched.
        """
        params = {"selector": {**REPOSITORY, "jobName": job}, "mode": "default"}
        done = self.ask(_LAUNCH, params=params)["launchRun"]
        if done["__typename"] != "LaunchRunSuccess":
            raise ValueError(str(done))

    def partitions(self, asset: Sequence[str]) -> int:
        """Return how many partitions of an asset are materialized."""
        node = self.ask(_PARTITIONS, key={"path": list(asset)})["assetNodeOrError"]
        return int(node["partitionStats"]["numMaterialized"])

    def terminate(self, run: str) -> None:
        """Do what the button in the page does."""
        self.ask(_TERMINATE, run=run)

    def _state(self, sensor: str) -> Mapping[str, Any]:
        found = self.ask(_SENSOR, sensor={**REPOSITORY, "sensorName": sensor})
        return found["sensorOrError"]["sensorState"]
