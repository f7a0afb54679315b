"""Tables of files that dbt-style models look up: their paths count from the property file."""
# pyright: basic

from pathlib import Path

from kaflow_engine.model.configuration.load_config import load_config
from kaflow_engine.model.project import load_project
from kaflow_engine.sql.named.attached import attached_text


def test_a_table_of_a_file_is_looked_up(tmp_path: Path) -> None:
    about = """
sources:
  - name: shop
    tables:
      - {name: users, config: {type: sqlite, path: ../users.db, table_name: users, attached: true}}
      - {name: tiers, config: {type: duckdb, path: /srv/t.db, table_name: tiers, attached: true}}
"""
    users, tiers = "{{ source('shop', 'users') }}", "{{ source('shop', 'tiers') }}"
    joins = f"JOIN {users} u ON o.u = u.id JOIN {tiers} t ON o.t = t.id"
    query = f"SELECT u.name, t.name AS tier FROM {{{{ source('shop', 'orders') }}}} o {joins}"
    orders = (
        "      - {name: orders, columns: [{name: u, data_type: INT}, {name: t, data_type: INT}]}\n"
    )
    files = {"models/deep/s.yml": about + orders, "models/m.sql": query}
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (found,) = load_project([tmp_path], load_config(None, {}), {}).pipelines
    looked_up = [attached_text(found, name) for name in ("users", "tiers")]
    paths = [str(Path(each.params.path).resolve()) for each in looked_up]
    assert paths == [str(tmp_path / "models" / "users.db"), "/srv/t.db"]
