"""Audits what is locked: Python packages by the package index, jars by `advisories.toml`.

Fails on a known vulnerability that is not allowed there, with a fix or without one, and on whatever
could not be audited. With `--lenient` the latter is a warning. A good result is kept for the day.
"""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

LOCKS = "requirements*.lock"
JARS = Path("engine/kaflow_engine/runtime/spark/jars.toml")
LIST = Path(".ci/advisories.toml")
KEPT = Path("build/audit")
OLDEST_DAYS = 90
"""How long the list of advisories is taken for data."""
_SECONDS = 300

Pin = tuple[str, str]
"""Name and version of a package."""
Answers = Mapping[Pin, Sequence[Mapping[str, Any]]]
"""What the index says of packages; those it says nothing of are missing."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A known vulnerability of something that is locked."""

    what: str
    ids: tuple[str, ...]
    fixed: str
    """The versions without it; empty: there are none."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is known of a file that locks something."""

    file: str
    audited: int
    findings: tuple[Finding, ...]
    missing: tuple[str, ...]
    """What could not be audited."""


def main(arguments: Sequence[str]) -> int:
    """Audit the files of this folder; return the exit code."""
    lenient = list(arguments) == ["--lenient"]
    locks = {path.name: path.read_text() for path in sorted(Path().glob(LOCKS))}
    written, jars = LIST.read_text(), JARS.read_text()
    key = sha256(repr((date.today(), locks, written, jars)).encode()).hexdigest()[:16]
    kept = KEPT / key
    if kept.exists():
        sys.stdout.write(kept.read_text())
        return 0
    known = tomllib.loads(written)
    answers = ask({pin for text in locks.values() for pin in pins(text)})
    outcomes = [
        *(of_lock(name, text, answers) for name, text in locks.items()),
        of_jars(tomllib.loads(jars), known, date.today()),
    ]
    lines, code = verdict(outcomes, known["allowed"], lenient=lenient)
    text = "".join(f"{line}\n" for line in lines)
    sys.stdout.write(text)
    if not code and not any(each.missing for each in outcomes):
        KEPT.mkdir(parents=True, exist_ok=True)
        kept.write_text(text)
    return code


def pins(text: str) -> list[Pin]:
    """Return the packages of a lock file, those for other systems too."""
    found = re.findall(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^\s;\\]+)", text, re.MULTILINE)
    return [(_plain(name), version) for name, version in found]


def ask(wanted: Iterable[Pin]) -> Answers:
    """Return what the index knows of packages; nothing where it cannot say of a first one."""
    ordered = sorted(wanted)
    if not report(ordered[:1]):
        return {}
    return {pin: known for each in _once_each(ordered) for pin, known in report(each).items()}


def report(wanted: Sequence[Pin]) -> Answers:
    """Ask the index of packages, each in one version; where it does not answer nothing is known."""
    with NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("".join(f"{name}=={version}\n" for name, version in wanted))
        file.flush()
        command = [sys.executable, "-m", "pip_audit", "--requirement", file.name, "--format=json"]
        options = ["--disable-pip", "--no-deps", "--progress-spinner=off"]
        try:
            done = subprocess.run(
                [*command, *options], capture_output=True, text=True, timeout=_SECONDS
            )
            found = json.loads(done.stdout)["dependencies"]
        except (subprocess.TimeoutExpired, ValueError, KeyError):
            return {}
    return {
        (_plain(each["name"]), each["version"]): each["vulns"] for each in found if "vulns" in each
    }


def of_lock(file: str, text: str, answers: Answers) -> Outcome:
    """Return what the index knows of the packages of a lock file."""
    wanted = pins(text)
    findings = [
        Finding(f"{name} {version}", _ids(each), ", ".join(each["fix_versions"]))
        for name, version in wanted
        for each in answers.get((name, version), ())
    ]
    missing = tuple(
        f"{name} {version}" for name, version in wanted if (name, version) not in answers
    )
    return Outcome(file, len(wanted) - len(missing), tuple(findings), missing)


def of_jars(bundles: Mapping[str, Any], known: Mapping[str, Any], today: date) -> Outcome:
    """Return what the list knows of jars; one that is too old knows nothing."""
    wanted = sorted({name for bundle in bundles.values() for name in bundle})
    fresh = (today - known["compared"]).days <= OLDEST_DAYS
    findings: list[Finding] = []
    missing: list[str] = []
    for coordinate in wanted:
        group, name, version, *_ = coordinate.split(":")
        advisories = known["jars"].get(f"{group}:{name}")
        if advisories is None or not fresh:
            missing.append(f"{name} {version}")
            continue
        for each in advisories:
            if any(is_between(version, *between) for between in each["affected"]):
                fixed = ", ".join(end for _, end in each["affected"] if end)
                findings.append(Finding(f"{name} {version}", (each["id"],), fixed))
    return Outcome(JARS.name, len(wanted) - len(missing), tuple(findings), tuple(missing))


def is_between(version: str, first: str, end: str) -> bool:
    """Return whether a version is one from the first to before the end; empty: without end."""
    return _numbers(first) <= _numbers(version) and (not end or _numbers(version) < _numbers(end))


def verdict(
    outcomes: Sequence[Outcome], allowed: Mapping[str, Mapping[str, Any]], *, lenient: bool
) -> tuple[list[str], int]:
    """Return what is to be said, and the exit code.

    Args:
        outcomes: Of every file.
        allowed: Vulnerability → `reason` and `date`, for those that need not be fixed.
        lenient: What could not be audited is a warning.
    """
    lines: list[str] = []
    code = 0
    for each in outcomes:
        for finding in each.findings:
            accepted = next((allowed[name] for name in finding.ids if name in allowed), None)
            code = code if accepted else 1
            cure = f"fixed in {finding.fixed}" if finding.fixed else "no fix"
            about = f"allowed {accepted['date']}: {accepted['reason']}" if accepted else cure
            lines.append(f"{each.file}: {finding.what}: {' '.join(finding.ids)}: {about}")
        lines.append(
            f"{each.file}: {each.audited} audited, {len(each.findings)} known vulnerabilities"
        )
        if each.missing:
            code = code if lenient else 1
            kind = "warning" if lenient else "error"
            some = ", ".join(each.missing[:3]) + (", …" if len(each.missing) > 3 else "")
            lines.append(
                f"{kind}: not audited: {each.file}: no data on {len(each.missing)}: {some}"
            )
    return lines, code


def _once_each(wanted: Sequence[Pin]) -> Iterator[list[Pin]]:
    """Take pins apart so that no list names a package twice; lock files differ in versions."""
    rest = list(wanted)
    while rest:
        first = {name: (name, version) for name, version in reversed(rest)}
        yield sorted(first.values())
        rest = [pin for pin in rest if first[pin[0]] != pin]


def _ids(vulnerability: Mapping[str, Any]) -> tuple[str, ...]:
    return (vulnerability["id"], *vulnerability.get("aliases", ()))


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _numbers(version: str) -> tuple[int, ...]:
    found = [int(number) for number in re.findall(r"\d+", version)]
    while found and not found[-1]:
        found.pop()
    return tuple(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
