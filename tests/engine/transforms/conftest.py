"""What tests of transforms share."""
# pyright: basic

import psycopg
import pytest

from tests.engine.transforms.files_here import OPEN, File


@pytest.fixture(params=OPEN)
def file(request, tmp_path):
    """Give a file of each database, which is not there yet."""
    return File(request.param, tmp_path / "users.db")


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
