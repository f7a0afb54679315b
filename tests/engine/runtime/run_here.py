"""A configuration for pipelines of tests."""

from kaflow_engine.model.config import Config


def config(broker: str, path: str, most: int = 400_000) -> Config:
    """A configuration for two tasks at a time."""
    return Config.model_validate(
        {
            "kafka": {"brokers": broker},
            "state": {"rocksdb": {"path": path}},
            "max_records": most,
            # starts a JVM that lives for seconds in half the CPU time
            "spark": {"conf": {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}},
        }
    )
