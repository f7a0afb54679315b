"""Translates client properties between librdkafka's names and the Java client's.

An author may write either kind in `kafka.properties`; both clients get what they understand.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from kaflow_engine.connectors.kafka import oauth
from kaflow_engine.connectors.kafka.oauth import jaas_text
from kaflow_engine.errors import ModelError

JAVA_ONLY = frozenset(
    {
        "client.dns.lookup",
        "default.api.timeout.ms",
        "fetch.max.wait.ms",
        "interceptor.classes",
        "key.deserializer",
        "key.serializer",
        "max.block.ms",
        "max.poll.records",
        "metric.reporters",
        "sasl.jaas.config",
        "sasl.login.class",
        "sasl.client.callback.handler.class",
        "sasl.login.connect.timeout.ms",
        "sasl.login.read.timeout.ms",
        "sasl.oauthbearer.header.urlencode",
        "sasl.login.callback.handler.class",
        "ssl.keymanager.algorithm",
        "ssl.protocol",
        "ssl.enabled.protocols",
        "ssl.trustmanager.algorithm",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.type",
        "value.deserializer",
        "value.serializer",
    }
)
"""Properties that librdkafka would refuse as unknown."""

ENGINE_OWNED = frozenset(
    {
        "auto.offset.reset",
        "bootstrap.servers",
        "enable.auto.commit",
        "enable.idempotence",
        "group.id",
        "interceptor.classes",
        "isolation.level",
        "key.deserializer",
        "key.serializer",
        "metadata.broker.list",
        "partitioner",
        "transactional.id",
        "value.deserializer",
        "value.serializer",
    }
)
"""Properties the engine decides, because its guarantees rest on them."""

ONE_SIDED: Mapping[str, str] = {
    "enable.ssl.certificate.verification": "certificates are always verified; name the "
    "authority that signed them in 'ssl.ca.location'",
    "sasl.oauthbearer.config": "tokens without a signature are not used; write "
    "'sasl.oauthbearer.method: oidc'",
    "enable.sasl.oauthbearer.unsecure.jwt": "tokens without a signature are not used; write "
    "'sasl.oauthbearer.method: oidc'",
    **dict.fromkeys(
        ("ssl.crl.location", "ssl.engine.location", "ssl.engine.id", "ssl.engine.factory.class"),
        "Spark's Kafka source and kaflow's own client would not both heed it; remove it",
    ),
}
"""Properties of one client that would leave the other one less secure, and what to do instead."""

_SECRET = re.compile(r"password|secret|jaas|sasl\.username|\.key$|key\.pem|oauthbearer\.config")
_JAAS = re.compile(r"""(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')""")
_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def is_secret(name: str) -> bool:
    """Say whether a property's value must never be shown."""
    return _SECRET.search(name) is not None


def to_librdkafka(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties as librdkafka names them.

    Raises:
        ModelError: What librdkafka has no counterpart of, or what Java has none of.
    """
    _check(properties)
    found = {k: v for k, v in properties.items() if k not in JAVA_ONLY | ENGINE_OWNED}
    if "sasl.mechanisms" in found:
        found["sasl.mechanism"] = found.pop("sasl.mechanisms")
    if "security.protocol" in found:
        found["security.protocol"] = found["security.protocol"].lower()
    if found.get("ssl.endpoint.identification.algorithm") == "":
        found["ssl.endpoint.identification.algorithm"] = "none"
    jaas = properties.get("sasl.jaas.config")
    if _mechanism(properties) == oauth.MECHANISM:
        found |= oauth.to_librdkafka(properties, {} if jaas is None else _options(jaas))
    elif jaas is not None and "sasl.username" not in found:
        found |= _from_jaas(jaas)
    if properties.get("ssl.keystore.type", "").upper() == "PEM":
        found.pop("ssl.keystore.location", None)
    return found | _trust_to_librdkafka(properties) | _identity_to_librdkafka(properties)


def to_java(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties as the Java client names them.

    Raises:
        ModelError: A certificate file that cannot be read, or what one client has no counterpart
            of.
    """
    _check(properties)
    translated = {"sasl.mechanisms", "sasl.username", "sasl.password", "ssl.ca.location"}
    translated |= {"ssl.ca.pem", "ssl.certificate.location", "ssl.key.location"}
    translated |= {"ssl.certificate.pem", "ssl.key.pem"}
    found = {k: v for k, v in properties.items() if k not in translated | ENGINE_OWNED}
    mechanism = _mechanism(properties)
    if mechanism is not None:
        found["sasl.mechanism"] = mechanism
    if "security.protocol" in found:
        found["security.protocol"] = found["security.protocol"].upper()
    if found.get("ssl.endpoint.identification.algorithm") == "none":
        found["ssl.endpoint.identification.algorithm"] = ""
    if mechanism == oauth.MECHANISM:
        found = oauth.to_java(found)
    elif "sasl.username" in properties and "sasl.jaas.config" not in found:
        found["sasl.jaas.config"] = _to_jaas(mechanism or "PLAIN", properties)
    return found | _stores_to_java(properties)


def _check(properties: Mapping[str, str]) -> None:
    for name, cure in ONE_SIDED.items():
        if name in properties:
            raise ModelError(f"the Kafka property '{name}' is not supported", hint=cure)
    mechanism = _mechanism(properties)
    known = (*_MODULES, oauth.MECHANISM)
    if mechanism is not None and mechanism not in known:
        raise ModelError(
            f"'sasl.mechanism' {mechanism} is not supported", hint="known: " + ", ".join(known)
        )


def _mechanism(properties: Mapping[str, str]) -> str | None:
    return properties.get("sasl.mechanism", properties.get("sasl.mechanisms"))


def _options(jaas: str) -> dict[str, str]:
    return {
        name: re.sub(r"\\(.)", r"\1", double or single)
        for name, double, single in _JAAS.findall(jaas)
    }


def _from_jaas(jaas: str) -> dict[str, str]:
    options = _options(jaas)
    if "username" not in options or "password" not in options:
        raise ModelError(
            "'sasl.jaas.config' has no username and password",
            hint="only PlainLoginModule and ScramLoginModule can be translated; "
            "write 'sasl.mechanism', 'sasl.username' and 'sasl.password' instead",
        )
    return {"sasl.username": options["username"], "sasl.password": options["password"]}


def _to_jaas(mechanism: str, properties: Mapping[str, str]) -> str:
    user, password = (
        jaas_text(properties.get(name, "")) for name in ("sasl.username", "sasl.password")
    )
    return f"{_MODULES[mechanism]} required username={user} password={password};"


def _trust_to_librdkafka(properties: Mapping[str, str]) -> dict[str, str]:
    if "ssl.truststore.certificates" in properties:
        return {"ssl.ca.pem": properties["ssl.truststore.certificates"]}
    if "ssl.truststore.location" not in properties or "ssl.ca.location" in properties:
        return {}
    if properties.get("ssl.truststore.type", "JKS").upper() != "PEM":
        raise ModelError(
            "'ssl.truststore.location' is a Java key store",
            hint="export its certificates as PEM and write 'ssl.ca.location: <file>.pem'",
        )
    return {"ssl.ca.location": properties["ssl.truststore.location"]}


def _identity_to_librdkafka(properties: Mapping[str, str]) -> dict[str, str]:
    if "ssl.keystore.key" in properties:
        return {
            "ssl.key.pem": properties["ssl.keystore.key"],
            "ssl.certificate.pem": properties.get("ssl.keystore.certificate.chain", ""),
        }
    kind = properties.get("ssl.keystore.type", "JKS").upper()
    if "ssl.keystore.location" not in properties or kind == "PKCS12":
        return {}
    if kind != "PEM":
        raise ModelError(
            "'ssl.keystore.location' is a Java key store",
            hint="convert it to PKCS12 and write 'ssl.keystore.type: PKCS12'",
        )
    store = properties["ssl.keystore.location"]
    return {"ssl.certificate.location": store, "ssl.key.location": store}


def _stores_to_java(properties: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    if properties.get("ssl.ca.location", "probe") != "probe":
        found["ssl.truststore.type"] = "PEM"
        found["ssl.truststore.location"] = properties["ssl.ca.location"]
    if "ssl.ca.pem" in properties:
        found["ssl.truststore.type"] = "PEM"
        found["ssl.truststore.certificates"] = properties["ssl.ca.pem"]
    key = _pem(properties, "ssl.key")
    if key is not None:
        found["ssl.keystore.type"] = "PEM"
        found["ssl.keystore.key"] = key
        found["ssl.keystore.certificate.chain"] = _pem(properties, "ssl.certificate") or ""
    if "ssl.keystore.location" in properties and "ssl.keystore.type" not in properties:
        # librdkafka reads no other kind of key store
        found["ssl.keystore.type"] = "PKCS12"
    return found


def _pem(properties: Mapping[str, str], prefix: str) -> str | None:
    if f"{prefix}.pem" in properties:
        return properties[f"{prefix}.pem"]
    path = properties.get(f"{prefix}.location")
    if path is None:
        return None
    try:
        return Path(path).read_text()
    except OSError as error:
        raise ModelError(f"'{prefix}.location' cannot be read: {path}") from error
