"""`SET`: which settings there are, and what they mean here."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from kaflow_engine.errors import Location, ModelError, SqlError, UnknownName
from kaflow_engine.model.lenses.grammar.source_text import SourceText
from kaflow_engine.model.lenses.grammar.syntax import Setting
from kaflow_engine.model.outputs.new_topic import TOPIC_CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the settings of a processor say."""

    delivery: str | None = None
    begin: str | None = None
    """Where events begin."""
    on_error: str | None = None
    """Of the topics that are read."""
    dead_letters: str | None = None
    topics: tuple["TopicSetting", ...] = ()
    """Of the topics that are written."""

    def of_topic(self, topic: str) -> Mapping[str, "TopicSetting"]:
        """Return the settings of one output topic, by name: its own before those of all."""
        of_all = {each.key: each for each in self.topics if each.topic is None}
        return of_all | {each.key: each for each in self.topics if each.topic == topic}


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSetting:
    """A setting of output topics."""

    topic: str | None
    """None: of all of them."""
    key: str
    value: str
    at: Location
    """Where its name begins."""


_POLICIES = {"continue": "skip", "fail": "fail", "dlq": "dead_letter"}
_EXACTLY_ONCE = ("exactly_once", "exactly_once_v2", "exactly_once_beta")
AVRO_NAME = ("value.avro.record", "value.avro.namespace")
"""Settings of topics that make the full Avro name of values."""
AVRO_KEY_NAME = ("key.avro.record", "key.avro.namespace")
"""Those of keys."""
AVRO_NAMES = (*AVRO_NAME, *AVRO_KEY_NAME)
COUNTS = {"partitions": "partitions", "replication": "replication_factor"}
"""Settings of topics that are numbers, and what an output calls them."""

_OTHERS: dict[str, str] = {
    "error.policy.write": "remove it: rows that cannot be written are dead letters",
}
"""Settings of Lenses that mean nothing here, and the way out."""

_KNOWN = (
    "auto.offset.reset",
    "commit.interval.ms",
    "dead.letter.queue",
    "defaults.topic.autocreate",
    "defaults.topic.key.avro.namespace",
    "defaults.topic.key.avro.record",
    "defaults.topic.partitions",
    "defaults.topic.replication",
    "defaults.topic.value.avro.namespace",
    "defaults.topic.value.avro.record",
    "enable.auto.commit",
    "error.policy",
    "error.policy.read",
    "processing.guarantee",
)


def read_settings(
    settings: list[Setting], source: SourceText
) -> tuple[Settings, tuple[ModelError, ...]]:
    """Read the settings of a processor, and what is wrong with them."""
    found = Settings()
    mistakes: list[ModelError] = []
    seen: dict[str, Setting] = {}
    for setting in settings:
        name = ".".join(part.text for part in setting.path)
        if name in seen:
            first = source.place(seen[name].offset)
            mistakes.append(
                SqlError(
                    f"'{name}' is set twice, first at {first}",
                    source.place(setting.offset),
                    "remove one of them",
                )
            )
        seen[name] = setting
        try:
            found = _taken(found, setting, name, source)
        except ModelError as mistake:
            mistakes.append(mistake)
    policy = seen.get("error.policy") or seen.get("error.policy.read")
    if found.dead_letters is not None and found.on_error != "dead_letter":
        mistakes.append(
            SqlError(
                "'dead.letter.queue' is for the error policy dlq",
                source.place(seen["dead.letter.queue"].offset),
                "write SET error.policy='dlq'; or remove it",
            )
        )
    elif found.on_error == "dead_letter" and found.dead_letters is None and policy is not None:
        mistakes.append(
            SqlError(
                "the error policy dlq needs a topic",
                source.place(policy.offset),
                "write SET dead.letter.queue='<topic>';",
            )
        )
    return found, tuple(mistakes)


def _taken(found: Settings, setting: Setting, name: str, source: SourceText) -> Settings:
    if setting.path[0].text == "topic" and len(setting.path) > 2:
        topic, key = setting.path[1].text, ".".join(part.text for part in setting.path[2:])
        return _of_topic(found, setting, key, source, topic)
    if name.startswith("defaults.topic."):
        return _of_topic(found, setting, name.removeprefix("defaults.topic."), source, None)
    check = _Checks(setting, name, source)
    match name:
        case "auto.offset.reset":
            return replace(found, begin=check.one_of(("earliest", "latest")))
        case "enable.auto.commit":
            check.one_of("false", "remove it: offsets are kept with the state of each batch")
        case "commit.interval.ms":
            check.number("'1000'")
        case "processing.guarantee":
            choice = check.one_of((*_EXACTLY_ONCE, "at_least_once"))
            exactly = choice in _EXACTLY_ONCE
            return replace(found, delivery="exactly_once" if exactly else "at_least_once")
        case "error.policy" | "error.policy.read":
            return replace(found, on_error=_POLICIES[check.one_of(tuple(_POLICIES))])
        case "dead.letter.queue":
            return replace(found, dead_letters=check.filled())
        case _:
            raise _unknown(setting, name, name, source)
    return found


def _of_topic(
    found: Settings, setting: Setting, key: str, source: SourceText, topic: str | None
) -> Settings:
    name = ".".join(part.text for part in setting.path)
    check = _Checks(setting, name, source)
    if key == "autocreate" and topic is None:
        check.one_of("true", "remove it: topics that are not there are created")
        return found
    if key in COUNTS:
        check.number("3")
    elif key in (*AVRO_NAMES, *TOPIC_CONFIG):
        check.filled()
    else:
        raise _unknown(setting, name, key, source, (*COUNTS, *AVRO_NAMES, *TOPIC_CONFIG))
    at = source.place(setting.path[0].offset)
    own = TopicSetting(topic=topic, key=key, value=setting.value, at=at)
    return replace(found, topics=(*found.topics, own))


def _unknown(
    setting: Setting, name: str, key: str, source: SourceText, of_topics: Iterable[str] = ()
) -> ModelError:
    at = source.place(setting.path[0].offset)
    if key in _OTHERS:
        return SqlError(f"the setting '{name}' is not available", at, _OTHERS[key])
    if of_topics:
        nearest = UnknownName("setting", key, of_topics).nearest
        hint = f"did you mean '{nearest}'?" if nearest else "write a setting of Kafka's topics"
        return SqlError(f"topics have no setting '{key}'", at, hint)
    unknown = UnknownName("setting", name, _KNOWN, at)
    if unknown.nearest is None:
        unknown.hint = (
            "settings of consumers and producers stand under kafka.properties in kaflow.yaml; "
            f"known here: {', '.join(_KNOWN)}"
        )
    return unknown


@dataclass(frozen=True, slots=True)
class _Checks:
    """The value of a setting, and what it may be."""

    setting: Setting
    name: str
    source: SourceText

    def one_of(self, choices: str | tuple[str, ...], hint: str | None = None) -> str:
        known = (choices,) if isinstance(choices, str) else choices
        value = self.setting.value.lower()
        if value not in known:
            shown = hint or f"known: {', '.join(known)}"
            raise self._wrong(f"'{self.name}' cannot be '{self.setting.value}'", shown)
        return value

    def number(self, example: str) -> None:
        if not self.setting.value.isdigit() or int(self.setting.value) == 0:
            raise self._wrong(f"'{self.name}' is a number above 0", f"write {example}")

    def filled(self) -> str:
        if not self.setting.value.strip():
            raise self._wrong(f"'{self.name}' is empty", "remove it")
        return self.setting.value

    def _wrong(self, message: str, hint: str) -> SqlError:
        return SqlError(message, self.source.place(self.setting.value_offset), hint)
