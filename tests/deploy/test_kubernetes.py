"""The manifests: valid by the schemas of Kubernetes, restricted, and true to the product."""

import re
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from kaflow_engine.model.configuration.load_config import load_config
from kaflow_engine.model.pipelines.loader import load_pipeline
from kaflow_engine.plan.planner.pipeline_plan import check_pipeline
from kaflow_engine.telemetry.server import PATHS
from tests.deploy.reading import DEPLOY, KUBERNETES, check_kaflow, documents, image_environment

(KUSTOMIZATION,) = documents(KUBERNETES / "kustomization.yaml")
FOUND = [item for name in KUSTOMIZATION["resources"] for item in documents(KUBERNETES / name)]
NAMED = {(item["kind"], item["metadata"]["name"]): item for item in FOUND}
DEPLOYMENTS = [item for item in FOUND if item["kind"] == "Deployment"]
CONFIG = load_config(None, image_environment())
VERSIONS = ["1.30.0", "1.34.0"]


def title(item):
    return f"{item['kind']} {item['metadata']['name']}"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("item", FOUND, ids=title)
def test_the_schema_is_kept(item, version):
    kubernetes_validate.validate(item, version, strict=True)


def test_every_file_is_used():
    files = {path.name for path in KUBERNETES.iterdir()} - {"kustomization.yaml"}
    assert files == set(KUSTOMIZATION["resources"])
    assert len(NAMED) == len(FOUND)
    namespace = KUSTOMIZATION["namespace"]
    for item in FOUND:
        assert item["metadata"].get("namespace", item["metadata"]["name"]) == namespace


@pytest.mark.parametrize("item", DEPLOYMENTS, ids=title)
def test_one_process_holds_the_state(item):
    spec = item["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"] == {"type": "Recreate"}
    pod = spec["template"]["spec"]
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]
    assert pod["terminationGracePeriodSeconds"] * 1000 > CONFIG.drain_deadline


@pytest.mark.parametrize("item", DEPLOYMENTS, ids=title)
def test_it_may_do_nothing_that_it_need_not(item):
    pod = item["spec"]["template"]["spec"]
    assert not pod["automountServiceAccountToken"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in containers(item):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {"cpu", "memory"} <= set(container["resources"]["requests"])
        assert "memory" in container["resources"]["limits"]


@pytest.mark.parametrize("item", DEPLOYMENTS, ids=title)
def test_what_it_names_is_there(item):
    pod = item["spec"]["template"]["spec"]
    assert ("ServiceAccount", pod["serviceAccountName"]) in NAMED
    for volume in pod["volumes"]:
        match volume:
            case {"configMap": {"name": name}}:
                assert ("ConfigMap", name) in NAMED
            case {"persistentVolumeClaim": {"claimName": name}}:
                assert ("PersistentVolumeClaim", name) in NAMED
            case _:
                assert {"secret", "emptyDir"} & set(volume)
    names = {volume["name"] for volume in pod["volumes"]}
    for container in containers(item):
        mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        assert set(mounts) <= names
        assert mounts["scratch"] == "/tmp"
        state = CONFIG.state.rocksdb.path
        assert state.startswith(mounts["state"] + "/")
        assert container["image"].partition(":")[0] in {i["name"] for i in KUSTOMIZATION["images"]}


@pytest.mark.parametrize("item", DEPLOYMENTS, ids=title)
def test_probes_ask_what_is_answered(item):
    for container in containers(item):
        ports = {port["name"]: port["containerPort"] for port in container.get("ports", [])}
        for kind in ("startupProbe", "livenessProbe", "readinessProbe"):
            asked = container.get(kind, {}).get("httpGet")
            if asked and asked["port"] == "http":
                assert asked["path"] in PATHS
                assert ports["http"] == CONFIG.http.port
    notes = item["spec"]["template"]["metadata"]["annotations"]
    assert notes["prometheus.io/path"] in PATHS
    assert notes["prometheus.io/port"] == str(CONFIG.http.port)


def test_the_engine_is_called_as_it_wants():
    (container,) = containers(NAMED["Deployment", "engine"])
    check_kaflow(container["args"])
    mounts = [mount["mountPath"] for mount in container["volumeMounts"]]
    assert container["args"][1] in mounts
    assert str(Path(container["args"][3]).parent) in mounts


def test_its_files_are_sound(tmp_path):
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    text = NAMED["ConfigMap", "kaflow"]["data"]["kaflow.yaml"]
    for name in re.findall(r"file:/run/secrets/kaflow/([\w.-]+)", text):
        (secrets / name).write_text(f"the {name}\n")
    written = tmp_path / "kaflow.yaml"
    written.write_text(text.replace("/run/secrets/kaflow", str(secrets)))
    (container,) = containers(NAMED["Deployment", "engine"])
    own = {variable["name"]: variable["value"] for variable in container["env"]}
    (secrets / "http-token").write_text("abc-4711")
    assert Path(own["KAFLOW__HTTP__TOKEN_FILE"]).parent == Path("/run/secrets/kaflow")
    own["KAFLOW__HTTP__TOKEN_FILE"] = str(secrets / Path(own["KAFLOW__HTTP__TOKEN_FILE"]).name)
    found = load_config(written, {**image_environment(), **own})
    assert (found.http.host, found.http.token) == ("0.0.0.0", "abc-4711")
    assert found.kafka.properties["sasl.password"] == "the password"
    for name, query in NAMED["ConfigMap", "pipelines"]["data"].items():
        (tmp_path / name).write_text(query)
        check_pipeline(load_pipeline(tmp_path / name, {}))


@pytest.mark.parametrize("item", DEPLOYMENTS, ids=title)
def test_a_port_that_others_reach_has_its_token_in_a_secret(item):
    for container in containers(item):
        own = {variable["name"]: variable["value"] for variable in container["env"]}
        assert own["KAFLOW__HTTP__HOST"] == "0.0.0.0"
        mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        assert str(Path(own["KAFLOW__HTTP__TOKEN_FILE"]).parent) == mounts["secrets"]


def test_dagster_is_set_up_as_in_compose():
    settings = NAMED["ConfigMap", "dagster"]["data"]
    here = yaml.safe_load(settings["dagster.yaml"])
    assert here == yaml.safe_load((DEPLOY / "dagster/dagster.yaml").read_text())
    (workspace,) = yaml.safe_load(settings["workspace.yaml"])["load_from"]
    (code,) = [c for c in containers(NAMED["Deployment", "platform"]) if c["name"] == "code"]
    assert str(workspace["grpc_server"]["port"]) in code["command"]


def containers(item):
    pod = item["spec"]["template"]["spec"]
    return [*pod.get("initContainers", []), *pod["containers"]]
