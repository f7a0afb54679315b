"""A Prometheus of this machine, which scrapes while a test runs, and is asked for what it found."""
# pyright: basic

import json
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import urlopen

from kaflow_engine.testing.services.child import free_ports
from tests.system import find_program

PATIENCE_S = 60.0


class Prometheus:
    """What is asked of a server that runs."""

    def __init__(self, address, log):
        self._api = f"{address}/api/v1/query"
        self._log = log

    def query(self, asked):
        """Return the samples of an instant query; None: it is refused, or no one answers."""
        try:
            with urlopen(f"{self._api}?{urlencode({'query': asked})}") as answer:
                return json.load(answer)["data"]["result"]
        except OSError:
            return None

    def until(self, asked, enough=bool):
        """Return what a query finds once that is enough."""
        deadline = time.monotonic() + PATIENCE_S
        while not ((found := self.query(asked)) and enough(found)):
            assert time.monotonic() < deadline, f"{found}\n{self._log.read_text()}"
            time.sleep(0.2)
        return found


@contextmanager
def scraping(folder: Path):
    """Yield a Prometheus that runs with the file `prometheus.yaml` of a folder, its home."""
    (port,) = free_ports(1)
    log = folder / "prometheus.log"
    command = [find_program("prometheus"), f"--config.file={folder / 'prometheus.yaml'}"]
    command += [f"--storage.tsdb.path={folder}", f"--web.listen-address=127.0.0.1:{port}"]
    with log.open("wb") as out:
        server = subprocess.Popen(command, stdout=out, stderr=out)
    try:
        yield Prometheus(f"http://127.0.0.1:{port}", log)
    finally:
        server.terminate()
        server.wait()
