"""A second listener of the embedded broker: SASL over TLS, with users of its own, or mutual TLS."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka.admin import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)

from kaflow_engine.connectors.kafka.client import KafkaSettings, open_admin

_ITERATIONS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Secure:
    """How clients are let in: with PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER."""

    identity: Path
    """PEM file: the broker's private key, then its certificate and those above it."""
    users: Mapping[str, str] = field(repr=False)
    """User name → password."""
    clients: Path | None = None
    """PEM file: the authority that clients need a certificate of; None: they need none."""
    tokens: Path | None = None
    """JWKS file: the keys that sign tokens for the audience `kafka`; None: no OAUTHBEARER."""

    @property
    def java_options(self) -> list[str]:
        """What the broker's JVM must be told."""
        if self.tokens is None:
            return []
        return [f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={self.tokens.as_uri()}"]


def with_secure_listener(properties: str, port: int, secure: Secure) -> str:
    """Return a broker's properties with a listener `SECURE` added to them."""
    changed: list[str] = []
    for line in properties.splitlines():
        name = line.partition("=")[0]
        if name in ("listeners", "advertised.listeners"):
            line += f",SECURE://127.0.0.1:{port}"
        elif name == "listener.security.protocol.map":
            line += ",SECURE:SASL_SSL"
        changed.append(line)
    users = " ".join(f'user_{name}="{secret}"' for name, secret in secure.users.items())
    plain = "org.apache.kafka.common.security.plain.PlainLoginModule"
    scram = "org.apache.kafka.common.security.scram.ScramLoginModule"
    own = {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "plain.sasl.jaas.config": f"{plain} required {users};",
        "scram-sha-256.sasl.jaas.config": f"{scram} required;",
        "scram-sha-512.sasl.jaas.config": f"{scram} required;",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(secure.identity),
    }
    if secure.clients is not None:
        own |= {
            "ssl.client.auth": "required",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(secure.clients),
        }
    if secure.tokens is not None:
        oauth = "org.apache.kafka.common.security.oauthbearer"
        own["sasl.enabled.mechanisms"] += ",OAUTHBEARER"
        own |= {
            "oauthbearer.sasl.jaas.config": f"{oauth}.OAuthBearerLoginModule required;",
            "oauthbearer.sasl.server.callback.handler.class": (
                f"{oauth}.OAuthBearerValidatorCallbackHandler"
            ),
            "sasl.oauthbearer.jwks.endpoint.url": secure.tokens.as_uri(),
            "sasl.oauthbearer.expected.audience": "kafka",
        }
    added = [f"listener.name.secure.{name}={value}" for name, value in own.items()]
    return "\n".join([*changed, *added, ""])


def add_scram_users(settings: KafkaSettings, secure: Secure) -> None:
    """Make the users known to the SCRAM mechanisms; those that are known keep their password."""
    admin = open_admin(settings).api  # the answers die with it
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        # a request may hold a user once
        wanted: list[UserScramCredentialAlteration] = [
            UserScramCredentialUpsertion(
                user, ScramCredentialInfo(mechanism, _ITERATIONS), password.encode()
            )
            for user, password in secure.users.items()
        ]
        for answer in admin.alter_user_scram_credentials(wanted).values():
            answer.result(timeout=30)
