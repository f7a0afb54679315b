"""OAUTHBEARER by client credentials, in librdkafka's and the Java client's names."""

from collections.abc import Iterable, Mapping

from kaflow_engine.errors import ModelError

MECHANISM = "OAUTHBEARER"

_PREFIX = "sasl.oauthbearer."
_ENDPOINT = f"{_PREFIX}token.endpoint.url"
_CLIENT = (f"{_PREFIX}client.id", f"{_PREFIX}client.secret")
_MORE = (f"{_PREFIX}scope", f"{_PREFIX}extensions")
_METHOD = f"{_PREFIX}method"
_LIBRDKAFKA_ONLY = (_METHOD, *_CLIENT, *_MORE, "https.ca.location", "https.ca.pem")
_JAAS_NAMES = {"clientId": _CLIENT[0], "clientSecret": _CLIENT[1], "scope": _MORE[0]}
_JAVA = "org.apache.kafka.common.security.oauthbearer"
_HANDLER = "sasl.login.callback.handler.class"
_NEEDED = "it takes 'sasl.oauthbearer.method: oidc', '….client.id', '….client.secret' and " + (
    "'….token.endpoint.url'"
)


def to_librdkafka(properties: Mapping[str, str], jaas: Mapping[str, str]) -> dict[str, str]:
    """Return what librdkafka wants beside the properties it knows.

    Args:
        properties: As the author wrote them.
        jaas: The options in `sasl.jaas.config`.

    Raises:
        ModelError: Something is missing, or asks for another kind of login.
    """
    found = {name: jaas[option] for option, name in _JAAS_NAMES.items() if option in jaas}
    found |= {name: properties[name] for name in (*_CLIENT, *_MORE) if name in properties}
    extensions = [
        f"{option.removeprefix('extension_')}={value}"
        for option, value in jaas.items()
        if option.startswith("extension_")
    ]
    if extensions:
        found.setdefault(_MORE[1], ",".join(extensions))
    method = properties.get(_METHOD, "oidc" if jaas else "default")
    if method != "oidc":
        # librdkafka would wait for a token that no one brings
        raise ModelError(f"'sasl.mechanism' {MECHANISM} needs client credentials", hint=_NEEDED)
    for name in (_ENDPOINT, *_CLIENT):
        if not properties.get(name) and not found.get(name):
            raise ModelError(f"'{name}' is missing for {MECHANISM}", hint=_NEEDED)
    return {**found, _METHOD: method}


def to_java(properties: Mapping[str, str]) -> dict[str, str]:
    """Return properties of which the Java client knows all.

    Raises:
        ModelError: As above, or the token's server has an authority of its own.
    """
    for name in ("https.ca.location", "https.ca.pem"):
        if name in properties:
            raise ModelError(
                f"the Kafka property '{name}' is not supported",
                hint="Java trusts the authorities of 'ssl.ca.location' for the token's server too",
            )
    written = properties.get("sasl.jaas.config")
    found = {name: value for name, value in properties.items() if name not in _LIBRDKAFKA_ONLY}
    found.setdefault(_HANDLER, f"{_JAVA}.OAuthBearerLoginCallbackHandler")
    if written is not None:
        return found
    wanted = to_librdkafka(properties, {})
    options = {option: wanted[name] for option, name in _JAAS_NAMES.items() if name in wanted}
    for extension in filter(None, wanted.get(_MORE[1], "").split(",")):
        name, _, value = extension.partition("=")
        options[f"extension_{name.strip()}"] = value.strip()
    text = " ".join(f"{option}={jaas_text(value)}" for option, value in options.items())
    return {**found, "sasl.jaas.config": f"{_JAVA}.OAuthBearerLoginModule required {text};"}


def java_options(clusters: Iterable[Mapping[str, str]]) -> str:
    """Return options of the JVM; its client asks no one for a token whom they do not name.

    Args:
        clusters: The properties of each.
    """
    named = (properties.get(_ENDPOINT) for properties in clusters)
    endpoints = list(dict.fromkeys(each for each in named if each is not None))
    if not endpoints:
        return ""
    return f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={','.join(endpoints)}"


def jaas_text(value: str) -> str:
    """Quote a value of a JAAS configuration."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
