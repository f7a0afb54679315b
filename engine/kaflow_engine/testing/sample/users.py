"""A table of users in PostgreSQL, for streams of clicks to be joined with."""

from importlib.resources import files

DATABASE, TABLE = "testdb", "users"
_TABLE_AND_ROWS = files("kaflow_engine.testing.sample").joinpath("users.sql")


def create_users(server: str, database: str) -> None:
    """Make a database with the table and five rows in it.

    Args:
        server: The address of a database that is there.
        database: The address of the new one.
    """
    import psycopg  # an optional dependency

    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {DATABASE}")
    with psycopg.connect(database) as connection:
        connection.execute(_TABLE_AND_ROWS.read_bytes())
