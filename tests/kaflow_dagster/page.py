"""Dagster's page in a real browser."""
# pyright: basic

import os
import re
import time
from pathlib import Path

from tests.system import find_program

_PATIENCE_S = 300
_SETTLED_MS = 2500
"""How long a page moves after all is there; only pictures mind."""


class Page:
    """Use it in a `with`. `KAFLOW_SCREENSHOTS` names a folder for pictures of what was seen."""

    def __init__(self, address: str) -> None:
        self.address = address
        folder = os.environ.get("KAFLOW_SCREENSHOTS")
        self.folder = Path(folder) if folder else None

    def __enter__(self) -> "Page":
        from playwright.sync_api import sync_playwright

        self._playwright = sync_playwright().start()
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        self._browser = self._playwright.chromium.launch(
            executable_path=find_program("chromium", "chromium-browser", "google-chrome"),
            args=arguments,
        )
        self.page = self._browser.new_page(viewport={"width": 1600, "height": 1000})
        return self

    def __exit__(self, *about: object) -> None:
        self._browser.close()
        self._playwright.stop()

    def open(self, path: str) -> None:
        """Go to a page."""
        self.page.goto(f"{self.address}{path}", wait_until="domcontentloaded")

    def click(self, words: str) -> None:
        """Click on the last thing on top that is called so."""
        found = self.page.get_by_text(words, exact=True)
        found.first.wait_for()
        found.last.click()

    def launch(self, words: str) -> None:
        """Click on what launches something, and leave the page, which asks Dagster all the time."""
        with self.page.expect_response(lambda answer: _launches(answer.request.post_data or "")):
            self.click(words)
        self.page.goto("about:blank")

    def sees_plots(self, count: int, name: str) -> None:
        """Wait until so many plots are drawn, and take a picture."""
        self.page.locator("canvas").nth(count - 1).wait_for()
        self.sees(name=name)

    def sees(self, *patterns: str, over: str | None = None, name: str | None = None) -> None:
        """Wait until the text of the page has all patterns; take a picture called `name`.

        Args:
            patterns: Regular expressions.
            over: Point at the first thing that is called so, again and again: a page that is drawn
                again takes away what it showed there.
            name: Of the picture.
        """
        end = time.monotonic() + _PATIENCE_S
        while True:
            if over is not None:
                self.page.mouse.move(0, 0)
                self.page.get_by_text(over, exact=True).first.hover()
            text = self.page.inner_text("body")
            missing = [pattern for pattern in patterns if not re.search(pattern, text)]
            if not missing:
                break
            assert time.monotonic() < end, f"{self.page.url} does not show {missing}:\n{text}"
            self.page.wait_for_timeout(500)
        if self.folder is not None and name is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.page.wait_for_timeout(_SETTLED_MS)
            self.page.screenshot(path=self.folder / f"{name}.png")


def _launches(body: str) -> bool:
    return re.search(r"mutation \w*Launch", body) is not None
