"""A state that is rebuilt goes on with what its sources have found, or begins without it."""

from pathlib import Path
from typing import Literal

import pytest

from kaflow_engine.connectors.sources.contract import KEPT
from kaflow_engine.runtime.takeover.rebuild import move_aside
from kaflow_engine.state.log.approval import OLD, Approval, Rebuild
from kaflow_engine.state.log.batch_log import STATE


def rebuild(begin: Literal["continue", "earliest", "latest"]) -> Rebuild:
    approval = Approval(
        pipeline="p", old="a", new="b", begin=begin, reasons=(), by="ann", at="2026-01-01T00:00:00Z"
    )
    return Rebuild(
        approval=approval, state_id="s", generation=1, epoch=1, offsets={"clicks": {0: 5}}
    )


def files(directory: Path) -> set[str]:
    found = (path.relative_to(directory) for path in directory.rglob("*.json"))
    return {path.as_posix() for path in found}


@pytest.mark.parametrize("begin", ["continue", "earliest", "latest"])
def test_only_what_goes_on_has_what_was_found(
    tmp_path: Path, begin: Literal["continue", "earliest", "latest"]
) -> None:
    kept = {f"{KEPT}/clicks/1.json", f"{KEPT}/moved/1.json"}
    for name in (STATE, *kept):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('{"state_id": "s"}')
    old = {f"{OLD}/s/{name}" for name in (STATE, *kept)}
    goes_on = {f"{KEPT}/clicks/1.json"} if begin == "continue" else set[str]()
    for _ in range(2):  # the first may have been interrupted
        move_aside(tmp_path, rebuild(begin))
        assert files(tmp_path) == {*old, *goes_on}
