"""The files of `deploy/`, read by their own rules."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import click
import yaml

from kaflow_engine.cli.main import kaflow

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
KUBERNETES = DEPLOY / "kubernetes"


def documents(path: Path) -> list[Any]:
    """Return all documents of a YAML file."""
    return list(yaml.safe_load_all(path.read_text()))


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the image in order, each with what follows."""
    text = (DEPLOY / "Dockerfile").read_text()
    plain = re.sub(r"\\\n", " ", re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE))
    lines = [line.strip().partition(" ") for line in plain.splitlines() if line.strip()]
    return [(name, " ".join(rest.split())) for name, _, rest in lines]


def image_environment() -> dict[str, str]:
    """Return the variables of the last stage."""
    text = " ".join(rest for name, rest in instructions() if name == "ENV")
    return dict(part.split("=", 1) for part in text.split())


def health_command() -> list[str]:
    """Return what the image runs to see whether it is well, by this Python."""
    (text,) = [rest for name, rest in instructions() if name == "HEALTHCHECK"]
    python, *rest = json.loads(text.partition("CMD ")[2])
    assert python == "python3"
    return [sys.executable, *rest]


def check_kaflow(arguments: list[str]) -> None:
    """Fail unless the command line takes these arguments."""
    with click.Context(kaflow) as context:
        command = kaflow.get_command(context, arguments[0])
        assert command is not None, arguments
        command.make_context(arguments[0], arguments[1:], parent=context)
