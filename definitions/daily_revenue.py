"""An asset downstream of a table that a stream fills: it depends on its key, and nothing else."""

from pathlib import Path

import dagster as dg
import duckdb
from deltalake import DeltaTable

from kaflow_engine import load_config

CONFIG = Path(__file__).parents[1] / "dbt_style_models" / "kaflow.yaml"


@dg.asset(
    deps=[["tables", "orders_by_day"]],
    partitions_def=dg.DailyPartitionsDefinition("2025-11-01", timezone="UTC"),
    group_name="reports",
    kinds={"duckdb"},
)
def daily_revenue(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
    """What the orders of a day bring in."""
    table = DeltaTable(str(Path(load_config(CONFIG).warehouse) / "orders_by_day"))
    orders = table.to_pyarrow_table(filters=[("_day", "=", context.partition_key)])
    sums = duckdb.from_arrow(orders).aggregate("count(*), coalesce(sum(amount), 0)").fetchone()
    count, revenue = sums or (0, 0)
    return dg.MaterializeResult(metadata={"orders": int(count), "revenue": float(revenue)})
