"""An Avro output schema that the author gives: registered as given, checked against the query."""

import json
from collections.abc import Sequence
from typing import cast

from kaflow_engine.errors import ModelError, UnknownName
from kaflow_engine.model.columns import Column
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.model.yaml_file import raise_all


def given_schema(spec: PipelineSpec, columns: Sequence[Column]) -> str:
    """Return the Avro schema of `output.schema.fields`.

    Raises:
        ModelError: a query column that is not among the fields.
    """
    given = spec.output.schema_
    assert given is not None
    assert given.fields is not None
    names = [str(cast(object, field.get("name"))) for field in given.fields]
    place = spec.place("output", "schema", "fields")
    wrong: list[ModelError] = []
    for column in columns:
        if column.name not in names:
            cause = UnknownName("field", column.name, names)
            wrong.append(
                ModelError(
                    f"the query column '{column.name}' is not in output.schema.fields",
                    place,
                    cause.hint or "add the field, or select the column under another name",
                )
            )
    raise_all(wrong)
    return json.dumps({"type": "record", "name": given.name, "fields": list(given.fields)})
