"""Connections to outside systems: what the configuration says of them, and what it never shows."""

import json
from pathlib import Path

import pytest

from kaflow_engine.errors import ModelError
from kaflow_engine.model.configuration.load_config import load_config
from kaflow_engine.model.configuration.show_config import settings_of


def test_connections_to_databases(tmp_path: Path) -> None:
    file = tmp_path / "kaflow.yaml"
    file.write_text(
        "postgres:\n  connections:\n"
        "    house: {url: 'postgresql://me:pw-of-house@db:5432/x'}\n"
        "    other_one: {url: '${URL}', password: 'word-of-other'}\n"
    )
    environment = {
        "URL": "postgres://db/y",
        "KAFLOW__POSTGRES__CONNECTIONS__MY_DB__URL": "postgresql://z",
    }
    overrides = {"postgres.connections.house.password": "from-the-line"}
    config = load_config(file, environment, overrides)
    assert {name: (c.url, c.password) for name, c in config.postgres.connections.items()} == {
        "house": ("postgresql://me:pw-of-house@db:5432/x", "from-the-line"),
        "other_one": ("postgres://db/y", "word-of-other"),
        "my_db": ("postgresql://z", None),
    }
    shown = {setting.key: setting for setting in settings_of(config)}
    assert shown["postgres.connections.house.url"].text == "postgresql://***@db:5432/x"
    assert shown["postgres.connections.house.url"].origin == f"{file}:3"
    assert shown["postgres.connections.other_one.password"].text == "***"
    assert "word" not in repr(config.postgres)
    for secret in ("pw-of-house", "word-of-other", "from-the-line"):
        assert secret not in str(ModelError(f"no login with {secret}"))
    file.write_text("postgres: {connections: {house: {url: 'mysql://db/x', user: me}}}\n")
    with pytest.raises(ModelError) as raised:
        load_config(file, {})
    assert str(raised.value).splitlines() == [
        f"{file}:1: unknown configuration key 'user'",
        "  hint: did you mean 'url'?",
        f"{file}:1: 'postgres.connections.house.url' is not the address of a database",
        "  hint: write postgresql://user:password@host:5432/database",
    ]


def test_connections_to_mysql(tmp_path: Path) -> None:
    file = tmp_path / "kaflow.yaml"
    file.write_text(
        "mysql:\n  connections:\n"
        "    house: {url: 'mysql://me:pw-of-house@db:3307/x', ca: /etc/db.pem}\n"
        "    other: {url: 'mysql://me@db', password: 'word-of-other'}\n"
    )
    config = load_config(file, {})
    assert {name: c.settings for name, c in config.mysql.connections.items()} == {
        "house": {"url": "mysql://me:pw-of-house@db:3307/x", "ca": "/etc/db.pem"},
        "other": {"url": "mysql://me@db", "password": "word-of-other"},
    }
    shown = {setting.key: setting for setting in settings_of(config)}
    assert shown["mysql.connections.house.url"].text == "mysql://***@db:3307/x"
    assert shown["mysql.connections.other.password"].text == "***"
    assert "word" not in repr(config.mysql)
    assert "pw-of-house" not in str(ModelError("no login with pw-of-house"))
    wrong = ("postgresql://db/x", "mysql:///x", "mysql://db/x?ssl=1", "db")
    named = ", ".join(f"c{number}: {{url: '{url}'}}" for number, url in enumerate(wrong))
    file.write_text(f"mysql: {{connections: {{{named}}}}}\n")
    with pytest.raises(ModelError) as raised:
        load_config(file, {})
    assert str(raised.value).splitlines() == [
        line
        for number in range(len(wrong))
        for line in (
            f"{file}:1: 'mysql.connections.c{number}.url' is not the address of a database",
            "  hint: write mysql://user:password@host:3306/database",
        )
    ]


def test_connections_to_clickhouse(tmp_path: Path) -> None:
    file = tmp_path / "kaflow.yaml"
    file.write_text(
        "clickhouse:\n  connections:\n"
        "    house: {url: 'https://me:pw%2Fof-house@db:8443/x', password: 'word-of-house'}\n"
        "    other: {url: 'http://me:pw%2Fof-other@db'}\n"
    )
    config = load_config(file, {})
    assert {name: c.settings for name, c in config.clickhouse.connections.items()} == {
        "house": {
            "url": "https://db:8443/",
            "database": "x",
            "user": "me",
            "password": "word-of-house",
        },
        "other": {"url": "http://db/", "user": "me", "password": "pw/of-other"},
    }
    shown = {setting.key: setting for setting in settings_of(config)}
    assert shown["clickhouse.connections.house.url"].text == "https://***@db:8443/x"
    assert shown["clickhouse.connections.house.password"].text == "***"
    assert "word" not in repr(config.clickhouse)
    assert "pw/of-other" not in str(ModelError("no login with pw/of-other"))
    file.write_text("clickhouse: {connections: {house: {url: 'https://db/x/y'}, b: {url: db}}}\n")
    with pytest.raises(ModelError) as raised:
        load_config(file, {})
    assert str(raised.value).splitlines() == [
        line
        for name in ("house", "b")
        for line in (
            f"{file}:1: 'clickhouse.connections.{name}.url' is not the address of a server",
            "  hint: write https://host:8443/database",
        )
    ]


def test_connections_to_catalogs(tmp_path: Path) -> None:
    file = tmp_path / "kaflow.yaml"
    file.write_text(
        "iceberg:\n  connections:\n"
        "    house: {uri: 'postgresql+psycopg://me:pw-of-house@db/x', warehouse: lake}\n"
        "    other:\n"
        "      {catalog: rest, uri: 'https://db', properties: {\n"
        "        s3.secret-access-key: word-of-bucket, token: word-of-token, s3.region: eu}}\n"
    )
    config = load_config(file, {})
    found = config.iceberg.connections
    assert {name: json.loads(c.settings["properties"]) for name, c in found.items()} == {
        "house": {
            "type": "sql",
            "uri": "postgresql+psycopg://me:pw-of-house@db/x",
            "warehouse": str(Path("lake").absolute()),
        },
        "other": {
            "type": "rest",
            "uri": "https://db",
            "s3.secret-access-key": "word-of-bucket",
            "token": "word-of-token",
            "s3.region": "eu",
        },
    }
    shown = str(settings_of(config))
    assert "***@db/x" in shown
    for secret in ("pw-of-house", "word-of-bucket", "word-of-token"):
        assert secret not in shown
        assert secret not in repr(config.iceberg)
        assert secret not in str(ModelError(f"no login with {secret}"))
    file.write_text("iceberg: {connections: {house: {uri: /data/catalog.db}}}\n")
    with pytest.raises(ModelError) as raised:
        load_config(file, {})
    assert str(raised.value).splitlines() == [
        f"{file}:1: 'iceberg.connections.house.uri' is not the address of a catalog",
        "  hint: write sqlite:////folder/catalog.db, postgresql+psycopg://… or https://host:8181",
    ]
