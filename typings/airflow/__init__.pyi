# Apache Airflow is in an environment of its own: this is what is used of it.
