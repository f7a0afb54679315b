"""What a start would do with the state of a pipeline, and what its stream is done with."""

from typing import TYPE_CHECKING

from kaflow_engine.api.lazy import lazily

if TYPE_CHECKING:
    from kaflow_engine.runtime.drive.backfill_guard import check_backfill, last_settled
    from kaflow_engine.runtime.planning.preview import Outlook, outlook_of
else:
    __getattr__ = lazily(__name__)

__all__ = ["Outlook", "check_backfill", "last_settled", "outlook_of"]
