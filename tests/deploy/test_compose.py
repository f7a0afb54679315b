"""The platform on one machine: what its files name exists, and only this machine reaches it."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from kaflow_engine.model.configuration.load_config import load_config
from kaflow_engine.telemetry.server import NEXT
from kaflow_engine.testing.sample import users
from tests.deploy.reading import DEPLOY, ROOT, check_kaflow, documents, image_environment

COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES = COMPOSE["services"]
PAGE = (ROOT / "engine" / "docs" / "deploy.md").read_text()


def environment(name):
    return SERVICES[name].get("environment", {})


KEYS = {
    *("image", "restart", "read_only", "cap_drop", "security_opt", "tmpfs", "environment"),
    *("volumes", "ports", "healthcheck", "depends_on", "entrypoint", "command"),
    *("stop_grace_period", "profiles", "user", "network_mode"),
}


@pytest.mark.parametrize("name", SERVICES)
def test_service(name):
    service = SERVICES[name]
    assert set(service) <= KEYS
    assert re.search(r":(v?\d+(\.\d+){1,2}|latest\})$", service["image"])
    for port in service.get("ports", []):
        assert port.startswith("127.0.0.1:")
    for other, wanted in as_mapping(service.get("depends_on", {})).items():
        assert other in SERVICES
        if wanted.get("condition") == "service_healthy":
            assert "test" in SERVICES[other]["healthcheck"]
    for mount in service.get("volumes", []):
        source = re.sub(r"\$\{[^}]*\}", "/", mount).split(":")[0]
        assert source == "/" or source in COMPOSE["volumes"] or (DEPLOY / source).exists()
    for key, value in service.get("environment", {}).items():
        assert isinstance(value, str), key


@pytest.mark.parametrize("name", [name for name in SERVICES if "KAFLOW" in SERVICES[name]["image"]])
def test_what_may_be_done_in_it(name):
    assert SERVICES[name]["read_only"]
    assert SERVICES[name]["cap_drop"] == ["ALL"]


@pytest.mark.parametrize("name", [n for n in SERVICES if "DAGSTER_HOME" in environment(n)])
def test_what_runs_kaflow(name, tmp_path):
    service = SERVICES[name]
    config = load_config(None, with_token(service["environment"], tmp_path))
    assert config.http.host == "0.0.0.0"
    assert config.kafka.schema_registry == "http://registry:8081"
    if "entrypoint" not in service:
        check_kaflow(service["command"])
        check_grace(service["stop_grace_period"], config.drain_deadline)


def test_the_streams_have_time_to_drain():
    check_grace(SERVICES["code"]["stop_grace_period"], load_config(None, {}).drain_deadline)


def test_projects_find_the_broker_by_the_variable_that_is_set(tmp_path):
    written = ROOT / "engine/kaflow_engine/cli/new_project/kaflow.yaml"
    config = load_config(written, with_token(SERVICES["code"]["environment"], tmp_path))
    assert config.kafka.brokers == ("kafka:9092",)


def test_prometheus_scrapes_ports_that_streams_take():
    (job,) = yaml.safe_load((DEPLOY / "prometheus/compose.yaml").read_text())["scrape_configs"]
    ports = range(load_config(None, {}).http.port, load_config(None, {}).http.port + NEXT)
    for target in job["static_configs"][0]["targets"]:
        service, _, port = target.partition(":")
        assert service in SERVICES
        assert int(port) in ports


def test_one_token_is_made_once_and_read_from_its_file(tmp_path):
    (job,) = yaml.safe_load((DEPLOY / "prometheus/compose.yaml").read_text())["scrape_configs"]
    file = job["authorization"]["credentials_file"]
    for name in ("code", "engine", "prometheus"):
        assert "token:/run/kaflow:ro" in SERVICES[name]["volumes"]
        needed = SERVICES[name]["depends_on"]["token"]
        assert needed == {"condition": "service_completed_successfully"}
    for name in ("code", "engine"):
        assert environment(name)["KAFLOW__HTTP__TOKEN_FILE"] == file
    (script,) = SERVICES["token"]["command"]
    script = script.replace("/run/kaflow", str(tmp_path))
    made = []
    for _ in range(2):
        subprocess.run([*SERVICES["token"]["entrypoint"], script], check=True)
        made.append((tmp_path / Path(file).name).read_text())
    assert made[0] == made[1]
    assert re.fullmatch("[0-9a-f]{48}", made[0])


def test_grafana_finds_prometheus_and_the_dashboard():
    (source,) = documents(DEPLOY / "grafana/provisioning/datasources/kaflow.yaml")
    assert source["datasources"][0]["url"] == "http://prometheus:9090"
    (boards,) = documents(DEPLOY / "grafana/provisioning/dashboards/kaflow.yaml")
    folder = boards["providers"][0]["options"]["path"]
    assert f"./grafana/kaflow.json:{folder}/kaflow.json:ro" in SERVICES["grafana"]["volumes"]


def test_dagster_is_set_up_as_in_a_new_project():
    ours = DEPLOY / "dagster/dagster.yaml"
    theirs = ROOT / "engine/kaflow_engine/cli/new_project/dagster_home/dagster.yaml"
    assert ours.read_text() == theirs.read_text()
    (workspace,) = documents(DEPLOY / "dagster/workspace.yaml")
    server = workspace["load_from"][0]["grpc_server"]
    assert server["host"] in SERVICES
    assert f"--port {server['port']} " in " ".join(SERVICES[server["host"]]["command"])


def with_token(environment, folder):
    """Return the variables of a container, with a token where they say it is."""
    (folder / "token").write_text("abc-4711")
    return {
        **image_environment(),
        **environment,
        "KAFLOW__HTTP__TOKEN_FILE": str(folder / "token"),
    }


def as_mapping(value):
    return value if isinstance(value, dict) else {name: {} for name in value}


def check_grace(period: str, deadline: int) -> None:
    assert int(period.removesuffix("s")) * 1000 > deadline


@pytest.mark.parametrize("name", ["postgres", "clickhouse"])
def test_databases_are_profiles_that_pipelines_reach(name, tmp_path):
    assert SERVICES[name]["profiles"] == [name]
    assert not any(name in as_mapping(each.get("depends_on", {})) for each in SERVICES.values())
    known = with_token(environment("code"), tmp_path)
    default = re.compile(r"\$\{\w+:-(\w+)\}")
    known = {key: default.sub(r"\1", value) for key, value in known.items()}
    (said,) = re.findall(rf"`{name}: (\{{connections: .*\}})` \|$", PAGE, re.MULTILINE)
    file = tmp_path / "kaflow.yaml"
    file.write_text(f"{name}: {said}\n")
    connection = getattr(load_config(file, known), name).connections["default"]
    own = {key: default.sub(r"\1", value) for key, value in environment(name).items()}
    user, password = (own[f"{name.upper()}_{key}"] for key in ("USER", "PASSWORD"))
    about = str(connection.settings)
    assert f"//{name}" in about or f"@{name}:" in about
    assert user in about
    assert password in about


def test_the_table_of_users_is_that_of_development():
    (mount,) = (m for m in SERVICES["postgres"]["volumes"] if m.endswith("initdb.d/users.sql:ro"))
    assert (DEPLOY / mount.partition(":")[0]).resolve() == Path(users.__file__).parent / "users.sql"
    assert environment("postgres")["POSTGRES_DB"] == users.DATABASE
