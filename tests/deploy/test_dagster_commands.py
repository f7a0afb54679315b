"""What the containers of Dagster are called with is what its commands take."""

import shlex

import click
import yaml

from tests.deploy.reading import DEPLOY, KUBERNETES, documents


def commands() -> dict[tuple[str, ...], click.Command]:
    """Return what Dagster's commands are; it takes seconds to load."""
    from dagster._cli.api import grpc_command, grpc_health_check_command
    from dagster._daemon.cli import liveness_check_command, run_command
    from dagster_webserver.cli import dagster_webserver

    return {
        ("dagster", "api", "grpc"): grpc_command,
        ("dagster", "api", "grpc-health-check"): grpc_health_check_command,
        ("dagster-daemon", "run"): run_command,
        ("dagster-daemon", "liveness-check"): liveness_check_command,
        ("dagster-webserver",): dagster_webserver,
    }


def calls():
    """Yield the arguments of every call of Dagster, wherever it stands in the files."""
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    for service in compose["services"].values():
        yield from _words(service.get("command", []))
        yield from _words(service.get("healthcheck", {}).get("test", []))
    for item in documents(KUBERNETES / "platform.yaml"):
        if item["kind"] == "Deployment":
            for container in item["spec"]["template"]["spec"]["containers"]:
                yield from _words(container["command"])
                for kind in ("startupProbe", "livenessProbe"):
                    yield from _words(container.get(kind, {}).get("exec", {}).get("command", []))


def _words(command):
    script = command[-1].splitlines() if "sh" in command else []
    lines = [shlex.split(line) for line in script] or [command]
    for words in lines:
        starts = [i for i, word in enumerate(words) if word.startswith("dagster")]
        if starts:
            yield words[starts[0] :]


def test_every_call_is_understood():
    found, programs = list(calls()), commands()
    for words in found:
        name, command = next((n, c) for n, c in programs.items() if tuple(words[: len(n)]) == n)
        known = {option for each in command.params for option in each.opts}
        asked = {word for word in words[len(name) :] if word.startswith("--")}
        assert asked <= known, words
    assert len(found) > 8
