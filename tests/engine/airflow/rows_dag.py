"""A DAG with a task for each row; its file is read by Airflow."""
# pyright: basic

import json
import os
from datetime import datetime, timedelta
from pathlib import Path

from airflow.sdk import DAG

from kaflow_engine.airflow import KaflowOperator, KaflowReadySensor

HOME = Path(os.environ["AIRFLOW_HOME"])

with DAG("rows", schedule=None, start_date=datetime(2026, 1, 1)) as dag:
    for number, row in enumerate(json.loads((HOME / "rows.json").read_text())):
        wait = row.get("wait", "")
        KaflowOperator(
            task_id=f"row_{number}",
            arguments=row["arguments"],
            project=row.get("project", str(HOME)),
            kaflow=row.get("kaflow", os.environ["FAKE"]),
            exit_codes={int(code): ending for code, ending in row.get("exit_codes", {}).items()},
            environment={
                "LOG": str(HOME / f"row_{number}.log"),
                "CODE": str(row["code"]),
                "ERROR": row.get("error", ""),
                "OUTPUT": row.get("output", ""),
                "WAIT": wait,
            },
            retries=1,
            retry_delay=timedelta(0),
            execution_timeout=timedelta(seconds=1) if wait == "timeout" else None,
        )
    for soft in (False, True):
        KaflowReadySensor(
            task_id=f"never_ready_{soft}",
            url=os.environ["UNUSED_ADDRESS"],
            timeout=0.1,
            poke_interval=0.05,
            soft_fail=soft,
        )
