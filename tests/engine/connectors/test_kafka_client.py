"""Settings reach both kinds of client in their own names, and secrets reach no one else."""

import pickle

import pytest

from kaflow_engine.connectors.kafka.client import KafkaSettings, open_admin, open_consumer
from kaflow_engine.connectors.kafka.errors import trouble
from kaflow_engine.errors import ModelError

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
LOGIN = {"sasl.mechanism": "PLAIN", "sasl.username": "ann", "sasl.password": 'se"cr\\et'}
JAAS = f'{PLAIN} required username="ann" password="se\\"cr\\\\et";'


OAUTH = "org.apache.kafka.common.security.oauthbearer"
TOKEN = {
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.method": "oidc",
    "sasl.oauthbearer.client.id": "me",
    "sasl.oauthbearer.client.secret": 's"x',
    "sasl.oauthbearer.token.endpoint.url": "https://idp/token",
}
WITH_EXTRAS = {
    **TOKEN,
    "sasl.oauthbearer.scope": "kafka all",
    "sasl.oauthbearer.extensions": "logicalCluster=lkc-1,identityPoolId=pool-2",
}
TOKEN_JAVA = {
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.token.endpoint.url": "https://idp/token",
    "sasl.login.callback.handler.class": f"{OAUTH}.OAuthBearerLoginCallbackHandler",
}
TOKEN_JAAS = f'{OAUTH}.OAuthBearerLoginModule required clientId="me" clientSecret="s\\"x"'
EXTRAS_JAAS = (
    f'{TOKEN_JAAS} scope="kafka all" extension_logicalCluster="lkc-1" '
    'extension_identityPoolId="pool-2";'
)


def settings(**properties: str) -> KafkaSettings:
    return KafkaSettings.of(["b1:9092", "b2:9092"], properties)


@pytest.mark.parametrize(
    ("written", "librdkafka"),
    [
        ({"linger.ms": "5"}, {"linger.ms": "5"}),
        ({"security.protocol": "SASL_SSL"}, {"security.protocol": "sasl_ssl"}),
        ({"sasl.mechanisms": "PLAIN"}, {"sasl.mechanism": "PLAIN"}),
        (
            {"sasl.mechanism": "PLAIN", "sasl.jaas.config": JAAS},
            {"sasl.mechanism": "PLAIN", "sasl.username": "ann", "sasl.password": 'se"cr\\et'},
        ),
        (
            {"ssl.truststore.type": "PEM", "ssl.truststore.location": "/ca.pem"},
            {"ssl.ca.location": "/ca.pem"},
        ),
        (
            {"ssl.keystore.type": "PEM", "ssl.keystore.location": "/me.pem"},
            {"ssl.certificate.location": "/me.pem", "ssl.key.location": "/me.pem"},
        ),
        (
            {"ssl.endpoint.identification.algorithm": ""},
            {"ssl.endpoint.identification.algorithm": "none"},
        ),
        (
            {"ssl.keystore.type": "PKCS12", "ssl.keystore.location": "/me.p12"},
            {"ssl.keystore.location": "/me.p12"},
        ),
        (
            {"ssl.keystore.key": "K", "ssl.keystore.certificate.chain": "C"},
            {"ssl.key.pem": "K", "ssl.certificate.pem": "C"},
        ),
        ({"ssl.truststore.certificates": "CA"}, {"ssl.ca.pem": "CA"}),
        (
            {"ssl.key.location": "/k.pem", "ssl.key.password": "p", "ssl.keystore.password": "q"},
            {"ssl.key.location": "/k.pem", "ssl.key.password": "p", "ssl.keystore.password": "q"},
        ),
        (TOKEN, TOKEN),
        (WITH_EXTRAS, WITH_EXTRAS),
        ({**TOKEN_JAVA, "sasl.jaas.config": EXTRAS_JAAS}, WITH_EXTRAS),
        ({"max.poll.records": "5", "group.id": "mine", "isolation.level": "read_uncommitted"}, {}),
    ],
)
def test_librdkafka(written: dict[str, str], librdkafka: dict[str, str]) -> None:
    plain = settings().librdkafka()
    assert settings(**written).librdkafka() == {**plain, **librdkafka}


@pytest.mark.parametrize(
    ("written", "java"),
    [
        ({"linger.ms": "5"}, {"linger.ms": "5"}),
        ({"security.protocol": "sasl_ssl"}, {"security.protocol": "SASL_SSL"}),
        (LOGIN, {"sasl.mechanism": "PLAIN", "sasl.jaas.config": JAAS}),
        (
            {"sasl.mechanisms": "SCRAM-SHA-512", "sasl.username": "a", "sasl.password": "b"},
            {
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.jaas.config": f'{SCRAM} required username="a" password="b";',
            },
        ),
        (
            {"ssl.ca.location": "/ca.pem"},
            {"ssl.truststore.type": "PEM", "ssl.truststore.location": "/ca.pem"},
        ),
        (
            {"ssl.key.pem": "K", "ssl.certificate.pem": "C"},
            {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.key": "K",
                "ssl.keystore.certificate.chain": "C",
            },
        ),
        ({"ssl.ca.pem": "CA"}, {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": "CA"}),
        ({"ssl.ca.location": "probe"}, {}),
        (
            {"ssl.keystore.location": "/me.p12", "ssl.keystore.password": "q"},
            {
                "ssl.keystore.type": "PKCS12",
                "ssl.keystore.location": "/me.p12",
                "ssl.keystore.password": "q",
            },
        ),
        (TOKEN, {**TOKEN_JAVA, "sasl.jaas.config": f"{TOKEN_JAAS};"}),
        (WITH_EXTRAS, {**TOKEN_JAVA, "sasl.jaas.config": EXTRAS_JAAS}),
        (
            {**TOKEN_JAVA, "sasl.jaas.config": EXTRAS_JAAS},
            {**TOKEN_JAVA, "sasl.jaas.config": EXTRAS_JAAS},
        ),
        (
            {"key.deserializer": "x", "auto.offset.reset": "latest", "enable.auto.commit": "true"},
            {},
        ),
    ],
)
def test_spark(written: dict[str, str], java: dict[str, str]) -> None:
    expected = {f"kafka.{name}": value for name, value in java.items()}
    assert settings(**written).spark() == {
        **expected,
        "kafka.bootstrap.servers": "b1:9092,b2:9092",
    }


def test_more_goes_over_what_was_written() -> None:
    config = settings(**{"linger.ms": "5"}).librdkafka(**{"linger.ms": 0})
    assert config["linger.ms"] == 0


def test_secrets_are_not_shown() -> None:
    shown = repr(settings(**LOGIN, **{"sasl.jaas.config": JAAS, "ssl.key.pem": "K3Y"}))
    assert "cr" not in shown.replace("sasl", "")
    assert "ann" not in shown
    assert "K3Y" not in shown
    assert "PLAIN" in shown


def test_settings_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(settings(**LOGIN))) == settings(**LOGIN)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ({"sasl.jaas.config": "x.OAuth required;"}, "has no username and password"),
        ({"ssl.truststore.location": "/t.jks"}, "is a Java key store"),
        ({"ssl.keystore.location": "/t.jks"}, "is a Java key store"),
    ],
)
def test_what_librdkafka_cannot_do_is_said(written: dict[str, str], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        settings(**written).librdkafka()


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ({**LOGIN, "sasl.mechanism": "GSSAPI"}, "'sasl.mechanism' GSSAPI is not supported"),
        ({"sasl.mechanisms": "AWS_MSK_IAM"}, "'sasl.mechanism' AWS_MSK_IAM is not supported"),
        ({"sasl.mechanism": "OAUTHBEARER"}, "OAUTHBEARER needs client credentials"),
        (
            {name: value for name, value in TOKEN.items() if not name.endswith("client.secret")},
            "'sasl.oauthbearer.client.secret' is missing for OAUTHBEARER",
        ),
        (
            {**TOKEN, "sasl.oauthbearer.config": "principal=x"},
            "'sasl.oauthbearer.config' is not supported",
        ),
        (
            {"enable.ssl.certificate.verification": "false"},
            "'enable.ssl.certificate.verification' is not supported",
        ),
        ({"ssl.crl.location": "/crl.pem"}, "'ssl.crl.location' is not supported"),
    ],
)
def test_what_not_both_clients_can_do_is_refused(written: dict[str, str], message: str) -> None:
    for translate in (settings(**written).librdkafka, settings(**written).spark):
        with pytest.raises(ModelError, match=message) as caught:
            translate()
        assert caught.value.hint
        assert "cr\\et" not in str(caught.value)


def test_an_authority_for_the_token_alone_is_refused() -> None:
    with pytest.raises(ModelError, match=r"'https\.ca\.location' is not supported"):
        settings(**TOKEN, **{"https.ca.location": "/ca.pem"}).spark()


def test_the_client_takes_what_is_translated() -> None:
    """librdkafka knows every name; it asks for a token, and no one answers."""
    for written in (TOKEN, WITH_EXTRAS, {**TOKEN_JAVA, "sasl.jaas.config": EXTRAS_JAAS}):
        here = {**written, "sasl.oauthbearer.token.endpoint.url": "http://127.0.0.1:1/"}
        assert open_admin(settings(**{**here, "security.protocol": "SASL_SSL"})).api is not None


def test_an_unknown_property_is_named() -> None:
    with pytest.raises(ModelError, match=r"unknown Kafka property 'lingre\.ms'\n.*'linger\.ms'"):
        open_admin(settings(**{"lingre.ms": "5"}))


def test_a_refused_value_is_not_repeated() -> None:
    with pytest.raises(ModelError, match=r"refuses 'security\.protocol'") as caught:
        open_consumer(settings(**{"security.protocol": "hunter2"}))
    assert "hunter2" not in str(caught.value)


class Reported:
    """Stands for a KafkaError, which cannot be made with a text."""

    def __init__(self, name: str, text: str = "") -> None:
        self._name, self._text = name, text

    def name(self) -> str:
        return self._name

    def str(self) -> str:
        return self._text


@pytest.mark.parametrize(
    ("error", "before", "message"),
    [
        ("_TRANSPORT", [], "no broker at b:1 answered within 2 s (doing it)"),
        ("_TIMED_OUT", ["_AUTHENTICATION"], "the broker at b:1 refused the login"),
        ("_TRANSPORT", ["_SSL", "_ALL_BROKERS_DOWN"], "no secure connection to the broker at b:1"),
        ("TOPIC_AUTHORIZATION_FAILED", [], "not authorised: doing it"),
        ("_FENCED", [], "another run of this pipeline has taken over (doing it)"),
        ("MSG_SIZE_TOO_LARGE", [], "a record is larger than the topic takes (doing it)"),
        ("UNKNOWN_TOPIC_OR_PART", [], "the topic does not exist (doing it)"),
        ("LEADER_NOT_AVAILABLE", [], "no broker leads the partition just now (doing it)"),
        ("INVALID_CONFIG", [], "doing it failed: invalid config"),
    ],
)
def test_errors_in_our_words(error: str, before: list[str], message: str) -> None:
    complaints = tuple(Reported(name) for name in before)
    found = trouble(Reported(error), "doing it", "b:1", 2000, complaints)  # type: ignore[arg-type]
    assert found.message == message
