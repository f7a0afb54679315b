"""A pipeline file and its state directory to what a start would do; nothing is changed."""

import json
from dataclasses import replace
from pathlib import Path

from kaflow_engine.errors import ModelError, StateError
from kaflow_engine.model.columns import widened
from kaflow_engine.model.config import Config
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.operators.params import Plan
from kaflow_engine.plan.build import build_plan, check_pipeline, declared_columns
from kaflow_engine.plan.explain import Columns, Resolver
from kaflow_engine.plan.verdict import StoredState, Verdict, judge, read_state, stored_plan
from kaflow_engine.runtime.plans import plan_text
from kaflow_engine.sql.read import topics_of

STALE = "the state holds the columns that were used so far; --connect looks for others"


def outlook_of(
    spec: PipelineSpec, config: Config, resolve: Resolver | None = None, *, stopped: bool = False
) -> Verdict:
    """Return what a start of a pipeline would do with its state.

    Args:
        spec: What the author wrote.
        config: Where the state is, and defaults.
        resolve: Finds columns that nobody declares; None: only those that the state holds.
        stopped: Answer for the time when nobody runs it any more.

    Raises:
        ModelError: The file is wrong.
    """
    stored = read_state(Path(config.state.rocksdb.path) / spec.id)
    if stopped:
        stored = replace(stored, holder=None)
    names = topics_of(spec.query, spec.place("query"))
    declared = {name: declared_columns(spec, name) for name in names}
    missing = [name for name, columns in declared.items() if columns is None]
    # What was found when the state was created is used again at every start.
    known = stored.columns
    unknown = [name for name in missing if name not in known]
    if unknown and resolve is not None:
        known |= resolve(spec, config, unknown)
    schemas = {name: columns or known.get(name) for name, columns in declared.items()}
    complete = {name: columns for name, columns in schemas.items() if columns is not None}
    if len(complete) < len(names):
        notices = tuple(notice.message for notice in check_pipeline(spec, config))
        return _without_columns(stored, notices)
    pinned = [name for name in missing if name not in unknown]
    try:
        plan = _plan(spec, config, complete)
    except ModelError as error:
        # The state holds the columns that were used, and the query may now want others.
        if not pinned:
            raise
        if resolve is None:
            reasons = (str(error), STALE)
            return Verdict(outlook="refused", reasons=reasons, watermark=stored.watermark)
        plan = _plan(spec, config, complete | widened(known, resolve(spec, config, pinned)))
    if stored.state is not None:
        plan = replace(plan, partitions=stored.state.partitions)
    try:
        old = None if stored.damage else stored_plan(stored)
    except StateError as error:
        return Verdict(outlook="refused", reasons=(str(error),))
    return judge(stored, old, json.loads(plan_text(plan)))


def _plan(spec: PipelineSpec, config: Config, schemas: Columns) -> Plan:
    return build_plan(spec, config, schemas).plan


def _without_columns(stored: StoredState, notices: tuple[str, ...]) -> Verdict:
    if stored.holder is not None or stored.damage is not None:
        return judge(stored, None, {})
    if stored.state is None:
        return Verdict(outlook="new", reasons=("there is no state yet", *notices), batch=1)
    return Verdict(outlook="refused", reasons=("a topic was added", *notices))
