"""Previews a start: pipeline files compared with state directories; nothing is changed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from kaflow_engine.errors import ModelError, StateError
from kaflow_engine.flow.flow import Flow
from kaflow_engine.model.config import Config
from kaflow_engine.model.configuration.with_brought import with_brought
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.evolution.evolution import inherit
from kaflow_engine.plan.evolution.start_decision import (
    StoredState,
    Verdict,
    judge,
    read_state,
    stored_plan,
)
from kaflow_engine.plan.explain.downstream import Reader, Touched, touched
from kaflow_engine.plan.explain.explain import Resolver
from kaflow_engine.plan.planner.pipeline_plan import check_pipeline
from kaflow_engine.runtime.planning.plan_codec import decided, plan_of
from kaflow_engine.runtime.planning.plan_with_state import plan_with_state
from kaflow_engine.sql.scope import NeedsSchema
from kaflow_engine.state.log.approval import Approval, Begin, load_approval
from kaflow_engine.state.log.batch_log import STATE
from kaflow_engine.state.storage.store import LocalStore

STALE = "the state holds the columns that were used so far; --connect looks for others"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """A pipeline, what runs of it, and what would."""

    name: str
    id: str
    verdict: Verdict
    stored: StoredState
    old: Flow | None = None
    """The plan of the state."""
    new: Flow | None = None
    """The plan of the file, as it inherits the state."""
    touched: tuple[Touched, ...] = ()
    """Pipelines that read what it writes."""


def outlook_of(
    spec: PipelineSpec, config: Config, resolve: Resolver | None = None, *, stopped: bool = False
) -> Outlook:
    """Return what a start of a pipeline would do with its state.

    Args:
        spec: What the author wrote.
        config: Where the state is, and defaults.
        resolve: Finds columns that no one declares; None: only those that the state holds.
        stopped: Answer for the time when no one runs it any more.

    Raises:
        ModelError: The file is wrong.
        SourceError: Columns were looked for, and cannot be found.
    """
    stored = read_state(_root(config) / spec.id)
    if stopped:
        stored = replace(stored, holder=None)
    found = Outlook(name=spec.name, id=spec.id, verdict=Verdict(status="damaged"), stored=stored)
    try:
        old = None if stored.damage else _old(stored)
        approval = load_approval(LocalStore(stored.directory))
    except StateError as error:
        return replace(found, verdict=Verdict(status="damaged", reasons=(str(error),)))
    found = replace(found, old=old)
    look = None if resolve is None else partial(resolve, spec, config)
    try:
        new = plan_with_state(spec, config, stored, look).plan
    except NeedsSchema as error:
        return replace(found, verdict=_without_columns(spec, config, stored, error))
    if old is not None:
        new = inherit(old, new)
    approved = _approved(approval, stored, new)
    return replace(found, new=new, verdict=judge(stored, old, new, approved))


def outlooks(
    specs: Sequence[PipelineSpec],
    config: Config,
    resolve: Resolver | None = None,
    *,
    whole: bool = False,
) -> tuple[Outlook, ...]:
    """Return what a start of pipelines would do, and to which others.

    Args:
        specs: What the author wrote.
        config: Where the states are, and defaults.
        resolve: Finds columns that no one declares.
        whole: These are all pipelines that there are: a state without a file was removed.

    Raises:
        ModelError: A file is wrong.
        SourceError: Columns were looked for, and cannot be found.
    """
    found = [outlook_of(spec, with_brought(config, [spec]), resolve) for spec in specs]
    if whole:
        found += _removed(_root(config), {spec.id for spec in specs})
    there = [each for each in found if each.verdict.status != "removed"]
    writes = [
        (spec.name, write.target)
        for spec in specs
        for write in spec.writes
        if write.output.topic is not None
    ]
    plans = {each.name: each.new or each.old for each in there}
    readers = {name: Reader.of(name, plan) for name, plan in plans.items() if plan}
    return tuple(
        replace(
            each,
            touched=touched(
                each.old,
                each.new,
                [reader for name, reader in readers.items() if name != each.name],
                {topic for name, topic in writes if name != each.name},
            ),
        )
        if each.old and (each.new or each.verdict.status == "removed")
        else each
        for each in found
    )


def _removed(root: Path, known: set[str]) -> list[Outlook]:
    """Return the states to which there is no file; those of backfills belong to their pipelines."""
    found: list[Outlook] = []
    for directory in sorted(root.iterdir()) if root.is_dir() else ():
        if directory.name in known or not (directory / STATE).is_file():
            continue
        stored = read_state(directory)
        try:
            old = _old(stored)
        except StateError:
            old = None
        if old is not None and old.backfill is not None:
            continue
        verdict = Verdict(
            status="removed",
            reasons=(stored.damage or f"no file has a pipeline of id '{directory.name}'",),
            watermark=stored.watermark,
            running=stored.holder,
        )
        name = old.name if old else directory.name
        found.append(Outlook(name=name, id=directory.name, verdict=verdict, stored=stored, old=old))
    return found


def _root(config: Config) -> Path:
    return Path(config.state.rocksdb.path).absolute()


def _old(stored: StoredState) -> Flow | None:
    text = stored_plan(stored)
    return None if text is None else plan_of(text)


def _approved(approval: Approval | None, stored: StoredState, new: Flow) -> Begin | None:
    if approval is None or stored.state is None or approval.old != stored.state.fingerprint:
        return None
    return approval.begin if approval.new == decided(new) else None


def _without_columns(
    spec: PipelineSpec, config: Config, stored: StoredState, error: NeedsSchema
) -> Verdict:
    if stored.damage is not None:
        return Verdict(status="damaged", reasons=(stored.damage,), running=stored.holder)
    notices = tuple(notice.message for notice in check_pipeline(spec, config))
    if stored.state is None:
        reasons = ("there is no state yet", *notices)
        return Verdict(status="new", reasons=reasons, batch=1, running=stored.holder)
    cause = error.__context__
    why = (str(cause), STALE) if isinstance(cause, ModelError) else ("a topic was added", *notices)
    return Verdict(status="unclear", reasons=why, watermark=stored.watermark, running=stored.holder)
