"""The form of answers about rows."""

import pyarrow as pa

KEPT = pa.schema([(name, pa.string()) for name in ("key", "by", "answer", "error", "message")])
"""What was said of rows: a key that tells a row from all others, who has asked, and the answer, or
why there is none."""
