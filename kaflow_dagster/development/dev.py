"""Dagster's page, daemon and code server on this machine, as `dg dev` starts them."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_STOP_S = 60.0


@dataclass(frozen=True, slots=True)
class Dev:
    """A running one; what it says goes to a file. Runs that it launched may outlive it."""

    process: "subprocess.Popen[bytes]"
    log: Path

    @staticmethod
    def start(
        workspace: Path, port: int, log: Path, environment: Mapping[str, str], folder: Path
    ) -> "Dev":
        """Start it.

        Args:
            workspace: The workspace file.
            port: Of the page, on this machine.
            log: What it says is added there.
            environment: Added to that of this process; `DAGSTER_HOME` is one of them.
            folder: Where it works.
        """
        dg = str(Path(sys.executable).with_name("dg"))
        with log.open("ab") as said:
            process = subprocess.Popen(
                [dg, "dev", "-w", str(workspace), "-h", "127.0.0.1", "-p", str(port)],
                cwd=folder,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
        return Dev(process, log)

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self.process.poll() is None

    def words(self) -> str:
        """Return the end of what it said."""
        return self.log.read_text(errors="replace")[-4000:]

    def stop(self) -> None:
        """End page, daemon and code server; runs go on."""
        self.process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(_STOP_S)

    def kill(self) -> None:
        """End whatever is left of it."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
