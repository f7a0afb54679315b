"""Topics by what a pipeline calls them, in whichever cluster each is."""
# pyright: basic

import pytest

from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.connectors.kafka.clusters.input_topics import InputTopics
from kaflow_engine.errors import SourceUnfit

HOME, WEST = KafkaSettings.of(["h:1"]), KafkaSettings.of(["w:1"])
TOPICS = InputTopics({"": HOME, "west": WEST}).with_place("w", "west", "t")


def test_those_of_a_cluster_are_together():
    found = [(each.kafka, each.names) for each in TOPICS.by_cluster(["t", "w", "u"])]
    assert found == [(HOME, {"t": "t", "u": "u"}), (WEST, {"t": "w"})]
    assert TOPICS.one_cluster(["t", "u"]) == HOME
    assert TOPICS.one_cluster(["w"]) is None
    assert TOPICS.kafka("w") == WEST


def test_a_cluster_that_is_not_configured_any_more():
    gone = InputTopics({"": HOME}, TOPICS.places)
    for ask in (gone.kafka, lambda name: list(gone.by_cluster([name]))):
        with pytest.raises(SourceUnfit, match=r"cluster 'west'.* is not in the") as caught:
            ask("w")
        assert caught.value.hint.startswith("configure it as kafka.clusters.west again")
