"""Asks the package index which of the locked packages have known vulnerabilities.

Fails on one that a newer version mends, unless it is allowed below with a reason. An index without
such data is said, and nothing more. What was found is kept for the day.
"""

import json
import re
import subprocess
import sys
from datetime import date
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

ALLOWED: dict[str, str] = {}
"""Vulnerability → why it does not concern this project."""

LOCK = Path("requirements.lock")
KEPT = Path("build/audit")
_SECONDS = 120


def main() -> int:
    """Audit the lock file of this folder; return the exit code."""
    text = LOCK.read_text()
    known = sha256(f"{date.today()}{ALLOWED}{text}".encode()).hexdigest()[:16]
    kept = KEPT / known
    if not kept.exists():
        lines, code = audit(text)
        if code:
            sys.stdout.write("\n".join(lines) + "\n")
            return code
        KEPT.mkdir(parents=True, exist_ok=True)
        kept.write_text("\n".join(lines) + "\n")
    sys.stdout.write(kept.read_text())
    return 0


def audit(text: str) -> tuple[list[str], int]:
    """Return what is known of the packages of a lock file, and the exit code."""
    first = re.split(r"\n(?=\S)", text, maxsplit=1)[0]  # asks once before it asks for all
    if not any("vulns" in each for each in report(first)):
        return ["no audit: the package index gives no data on vulnerabilities"], 0
    return verdict(report(text), ALLOWED)


def report(text: str) -> list[dict[str, Any]]:
    """Return what the index says of each package; nothing where it cannot be asked."""
    with NamedTemporaryFile("w", suffix=".txt") as lock:
        lock.write(text + "\n")
        lock.flush()
        command = [sys.executable, "-m", "pip_audit", "--requirement", lock.name, "--format=json"]
        options = ["--disable-pip", "--require-hashes", "--progress-spinner=off"]
        try:
            done = subprocess.run(
                [*command, *options], capture_output=True, text=True, timeout=_SECONDS
            )
            return json.loads(done.stdout)["dependencies"]
        except (subprocess.TimeoutExpired, ValueError, KeyError):
            return []


def verdict(packages: list[dict[str, Any]], allowed: dict[str, str]) -> tuple[list[str], int]:
    """Return a line for each vulnerability, and 1 if one of them has to be mended."""
    lines: list[str] = []
    code = 0
    for package in packages:
        for found in package.get("vulns", ()):
            names = [found["id"], *found.get("aliases", ())]
            reason = next((allowed[name] for name in names if name in allowed), None)
            mended = ", ".join(found["fix_versions"])
            if reason is None and mended:
                code = 1
            about = (
                f"allowed: {reason}" if reason else f"mended in {mended}" if mended else "no fix"
            )
            lines.append(f"{package['name']} {package['version']}: {' '.join(names)}: {about}")
    asked = sum("vulns" in package for package in packages)
    return [*lines, f"{asked} packages, {len(lines)} known vulnerabilities"], code


if __name__ == "__main__":
    sys.exit(main())
