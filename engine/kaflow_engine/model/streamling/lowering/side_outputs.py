"""Side outputs of the process → an output of each source, whose rows they see, to nowhere."""

from kaflow_engine.model.configuration.streamling.names import plugin_id
from kaflow_engine.model.streamling.lowering.context import Lowering
from kaflow_engine.model.streamling.lowering.parts import said
from kaflow_engine.model.streamling.lowering.sinks import known_key
from kaflow_engine.model.streamling.operations import OPERATION
from kaflow_engine.model.streamling.sql.rows import quoted
from kaflow_engine.model.streamling.topology import Node


def lower_side_outputs(work: Lowering, source: Node) -> None:
    """Show the rows of a source, with `_gs_op` unless it is read as a table."""
    rows = work.rows[source.name]
    operation = {"changes": f", _op AS {OPERATION}", "inserts": f", 'i' AS {OPERATION}"}
    selected = f"*{operation.get(rows.kind, '')}"
    about = {
        "query": f"SELECT {selected} FROM {quoted(work.called[source.name])}",
        "type": "blackhole",
        "name": f"{source.name}.seen",
        "side_outputs": [
            {"type": plugin_id(name), **({"options": dict(options)} if options else {})}
            for name, options in work.settings.side_outputs
        ],
        **known_key(rows),
    }
    work.parts.landing.append(said(source.place(), about))
