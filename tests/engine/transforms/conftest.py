"""What tests of transforms share."""
# pyright: basic

import psycopg
import pytest


@pytest.fixture
def crm(postgres):
    """Run statements in the schema `crm`, which is there for one test."""

    def statements(*texts):
        with psycopg.connect(postgres.url, autocommit=True) as connection:
            for text in texts:
                connection.execute(text)

    statements("DROP SCHEMA IF EXISTS crm CASCADE", "CREATE SCHEMA crm")
    yield statements
    statements("DROP SCHEMA crm CASCADE")
