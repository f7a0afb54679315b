"""A project on this machine, to try it out: a broker, sample records, and a terminal."""

from typing import TYPE_CHECKING

from kaflow_engine.api.lazy import lazily

if TYPE_CHECKING:
    from kaflow_engine.cli.options import PositiveType
    from kaflow_engine.cli.output import Clock
    from kaflow_engine.cli.stopping import stop_requests
    from kaflow_engine.testing.sample.feed import create_topics
    from kaflow_engine.testing.sample.sample_feed import Feed, sample_topics
    from kaflow_engine.testing.services.broker import Broker
    from kaflow_engine.testing.services.child import free_ports
else:
    __getattr__ = lazily(__name__)

__all__ = [
    "Broker",
    "Clock",
    "Feed",
    "PositiveType",
    "create_topics",
    "free_ports",
    "sample_topics",
    "stop_requests",
]
