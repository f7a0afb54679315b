"""Outputs of several chains and of unions, as assets."""
# pyright: basic

import dagster as dg

from kaflow_dagster.assets.specs import build_kaflow_specs
from kaflow_dagster.assets.views import view_project

CHAINS = """
name: merged
outputs:
- query: |
    SELECT o.id, c.country FROM orders o JOIN customers c ON o.customer = c.id
    UNION ALL SELECT id, country FROM visits
  topic: everything
  key: id
- {query: SELECT id FROM visits, topic: visitors, key: id}
state: {dimensions: [customers]}
topics:
  orders: {columns: {id: VARCHAR, customer: VARCHAR}}
  customers: {columns: {id: VARCHAR, country: VARCHAR}}
  visits: {columns: {id: VARCHAR, country: VARCHAR}}
"""


def keys(*names):
    return [dg.AssetKey(["kafka", name]) for name in names]


def test_an_output_depends_on_the_topics_of_its_own_chains(tmp_path):
    (tmp_path / "p.yaml").write_text(CHAINS)
    specs = {spec.key: spec for spec in build_kaflow_specs(view_project([tmp_path]))}
    stream = dg.AssetKey(["streams", "merged"])
    found = {
        name: {dep.asset_key for dep in specs[dg.AssetKey(["kafka", name])].deps}
        for name in ("everything", "visitors", "merged.dead_letters")
    }
    assert found == {
        "everything": {stream, *keys("orders", "customers", "visits")},
        "visitors": {stream, *keys("visits")},
        "merged.dead_letters": {stream},
    }
    assert {dep.asset_key for dep in specs[stream].deps} == {*keys("orders", "customers", "visits")}


def test_a_column_of_a_union_comes_from_all_its_branches(tmp_path):
    (tmp_path / "p.yaml").write_text(CHAINS)
    (spec,) = (
        s for s in build_kaflow_specs(view_project([tmp_path])) if "everything" in s.key.path
    )
    lineage = spec.metadata["dagster/column_lineage"].deps_by_column
    customers, orders, visits = keys("customers", "orders", "visits")
    assert lineage == {
        "id": [dg.TableColumnDep(orders, "id"), dg.TableColumnDep(visits, "id")],
        "country": [dg.TableColumnDep(customers, "country"), dg.TableColumnDep(visits, "country")],
    }


def test_outputs_of_chains_that_feed_each_other_are_no_ring(tmp_path):
    for name, other in (("one", "two"), ("two", "one")):
        (tmp_path / f"{name}.yaml").write_text(
            f"""
name: {name}
outputs:
- {{query: SELECT id FROM {other}_out, topic: {name}_out, key: id}}
- {{query: SELECT id FROM visits, topic: {name}_visits, key: id}}
topics:
  {other}_out: {{columns: {{id: VARCHAR}}}}
  visits: {{columns: {{id: VARCHAR}}}}
"""
        )
    dg.Definitions.validate_loadable(dg.Definitions(build_kaflow_specs(view_project([tmp_path]))))
