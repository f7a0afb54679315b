"""A journal of what leaves: one line of JSON for the rows that a task has for an output."""

import json
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from kaflow_engine.api.side_outputs import GivenSideOutput, SeenRows


class Options(BaseModel):
    """What an author may say under `options`."""

    model_config = ConfigDict(extra="forbid")

    file: str


class Audit:
    """The kind of side output, as planning asks it; light to load."""

    contract = 1
    options = Options

    def open(self, given: GivenSideOutput) -> "Lines":
        """Begin to look."""
        return Lines(given.output, Options.model_validate(given.options).file)


@dataclass(frozen=True)
class Lines:
    """What looks at rows; a batch that runs again is there twice, under its number."""

    output: str
    file: str

    def __call__(self, seen: SeenRows) -> None:
        """Write how many rows leave, and of what batch they are."""
        about = {"output": self.output, "batch": seen.batch, "rows": seen.rows.num_rows}
        with open(self.file, "a", encoding="utf-8") as file:
            file.write(f"{json.dumps(about)}\n")
