"""The network policies: nothing reaches a pod, and a pod reaches nothing, without a reason."""

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from kaflow_engine.telemetry.server import NEXT
from tests.deploy.test_kubernetes import (
    CONFIG,
    DEPLOYMENTS,
    KUSTOMIZATION,
    NAMED,
    containers,
    title,
)

POLICIES = [item for (kind, _), item in NAMED.items() if kind == "NetworkPolicy"]
VALUES = NAMED["ConfigMap", "network"]["data"]


def rules(item, direction):
    return item["spec"].get(direction, [])


def test_what_no_policy_allows_is_refused():
    spec = NAMED["NetworkPolicy", "nothing-else"]["spec"]
    assert spec == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


@pytest.mark.parametrize("item", POLICIES, ids=title)
def test_every_rule_names_peers_and_ports(item):
    for direction, side in (("ingress", "from"), ("egress", "to")):
        for rule in rules(item, direction):
            assert rule[side]
            assert rule["ports"]
            for peer in rule[side]:
                everyone = ({}, {"matchLabels": {}}, "0.0.0.0/0")
                assert (
                    peer.get("namespaceSelector", peer.get("ipBlock", {}).get("cidr"))
                    not in everyone
                )
        if rules(item, direction):
            assert direction.capitalize() in item["spec"]["policyTypes"]


@pytest.mark.parametrize("item", POLICIES, ids=title)
def test_a_policy_is_about_pods_that_exist(item):
    wanted = item["spec"]["podSelector"].get("matchLabels", {}).items()
    pods = [each["spec"]["template"]["metadata"]["labels"] for each in DEPLOYMENTS]
    assert [pod for pod in pods if wanted <= pod.items()]


def test_only_ports_that_something_listens_on_are_open():
    opened = {
        (port["port"], port.get("endPort", port["port"]))
        for item in POLICIES
        for rule in rules(item, "ingress")
        for port in rule["ports"]
    }
    first = CONFIG.http.port
    (page,) = [c for c in containers(NAMED["Deployment", "platform"]) if c["name"] == "page"]
    named = {port["containerPort"] for port in page["ports"]}
    assert opened == {(first, first + NEXT - 1), *((port, port) for port in named)}


def test_only_the_proxy_reaches_the_page_and_only_prometheus_the_metrics():
    for name, pod, value in (
        ("page", "oauth2-proxy", "page-namespace"),
        ("metrics", "prometheus", "prometheus-namespace"),
    ):
        (rule,) = rules(NAMED["NetworkPolicy", name], "ingress")
        assert rule["from"] == [
            {
                "namespaceSelector": {
                    "matchLabels": {"kubernetes.io/metadata.name": VALUES[value]}
                },
                "podSelector": {"matchLabels": {"app.kubernetes.io/name": pod}},
            }
        ]


def test_brokers_of_the_configuration_may_be_reached():
    written = yaml.safe_load(NAMED["ConfigMap", "kaflow"]["data"]["kaflow.yaml"])
    for broker in written["kafka"]["brokers"]:
        address = urlsplit(f"//{broker}")
        assert str(address.port) == VALUES["brokers-port"]
        assert address.hostname.split(".")[1] == VALUES["brokers-namespace"]


def test_names_can_be_looked_up():
    (rule,) = rules(NAMED["NetworkPolicy", "names"], "egress")
    assert {(port["port"], port["protocol"]) for port in rule["ports"]} == {
        (53, "UDP"),
        (53, "TCP"),
    }


def test_the_kustomization_sets_every_value_where_it_stands():
    """Each value replaces a field that is there, and is what the field says without it."""
    used = set()
    for replacement in KUSTOMIZATION["replacements"]:
        source = replacement["source"]
        assert (source["kind"], source["name"]) == ("ConfigMap", "network")
        name = source["fieldPath"].removeprefix("data.")
        used.add(name)
        for target in replacement["targets"]:
            item = NAMED[target["select"]["kind"], target["select"]["name"]]
            for path in target["fieldPaths"]:
                assert str(at(item, path)) == VALUES[name]
    assert used == set(VALUES)


def at(item, path):
    for bracketed, plain in re.findall(r"\[([^]]+)\]|([^.\[\]]+)", path):
        item = item[int(plain)] if plain.isdigit() else item[bracketed or plain]
    return item


def test_the_values_are_not_applied_themselves():
    notes = NAMED["ConfigMap", "network"]["metadata"]["annotations"]
    assert notes["config.kubernetes.io/local-config"] == "true"
    assert "network.yaml" in {Path(name).name for name in KUSTOMIZATION["resources"]}
