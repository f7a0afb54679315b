"""SQL of the key of a record, made of the parts of a key."""

from collections.abc import Sequence

from kaflow_engine.duck.quoting import identifier, literal
from kaflow_engine.model.key_formats import KeyFormat
from kaflow_engine.sql.shape import OutputShape


def record_key(
    pairs: Sequence[tuple[str, str]],
    discriminator: OutputShape | None,
    form: KeyFormat | None,
    *,
    is_object: bool = False,
) -> str:
    """Return SQL of the key of a record: of one value its text, else a JSON object.

    Args:
        pairs: What its parts are called, with their SQL.
        discriminator: The literal that tells branches of a UNION ALL apart: it comes first.
        form: How the key is written: under another format than text one value stays as it is,
            and several are a struct where they are written as JSON or Avro.
        is_object: One value is in an object, too.
    """
    if discriminator is not None:
        pairs = [(discriminator.name, discriminator.expr.sql), *pairs]
    alone = not is_object and discriminator is None and len(pairs) == 1
    if form not in (None, "text") and (alone or form in ("json", "avro")):
        return pairs[0][1] if alone else packed_key(pairs)
    listed = ", ".join(f"{literal(name)}, {value}" for name, value in pairs)
    sql = f"CAST(json_object({listed}) AS VARCHAR)"
    if not alone:
        return sql
    value = pairs[0][1]
    return f"CASE WHEN {value} IS NULL THEN {sql} ELSE CAST({value} AS VARCHAR) END"


def packed_key(pairs: Sequence[tuple[str, str]]) -> str:
    """Return SQL of parts of a key, which are called as is said, as a struct."""
    return f"struct_pack({', '.join(f'{identifier(name)} := {sql}' for name, sql in pairs)})"
