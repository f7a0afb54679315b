"""What a start would do with the state of a pipeline, and what its stream is done with."""

from typing import TYPE_CHECKING

from kaflow_engine.api.lazy import lazily

if TYPE_CHECKING:
    from kaflow_engine.runtime.outlook import Outlook, outlook_of
    from kaflow_engine.runtime.owner import check_backfill, last_settled
else:
    __getattr__ = lazily(__name__)

__all__ = ["Outlook", "check_backfill", "last_settled", "outlook_of"]
