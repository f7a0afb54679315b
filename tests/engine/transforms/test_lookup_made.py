"""Tables that SQL makes of files and literals, which queries look up."""
# pyright: basic

import os

import pytest

from kaflow_engine.errors import SourceAway, SourceUnfit
from tests.engine.transforms.lookup_here import Running

pytestmark = pytest.mark.slow

QUERY = "SELECT t.k, u.name FROM t LEFT JOIN users u ON t.k = u.id"
OF_FILE = "CREATE TABLE users AS SELECT * FROM read_csv('{}')"


def running(sql, files=(), query=QUERY):
    said = {"type": "sql", "sql": sql, "table_name": "users", "files": [str(f) for f in files]}
    return Running(None, query, {"k": "INTEGER"}, said)


@pytest.fixture
def users(tmp_path):
    path = tmp_path / "it's users.csv"
    path.write_text("id,name\n1,Alice\n2,Bob\n")
    return path


def of_file(path):
    return OF_FILE.format(str(path).replace("'", "''"))


def names(made, *keys):
    return [row["name"] for row in made.rows(*({"k": key} for key in keys))]


def test_rows_of_a_file_and_of_literals(users):
    sql = (
        f"{of_file(users)} WHERE id > 1; INSERT INTO users VALUES (3, 'Cleo'), (4, NULL);"
        "CREATE TABLE more (id INT); INSERT INTO users SELECT 5, 'Eve' FROM users WHERE id = 3"
    )
    assert names(running(sql, [users]), 1, 2, 3, 4, 5) == [None, "Bob", "Cleo", None, "Eve"]


def test_a_file_that_is_another_one_is_read_by_the_next_batch(users, tmp_path):
    made = running(of_file(users), [users])
    assert names(made, 1) == ["Alice"]
    other = tmp_path / "other.csv"
    other.write_text("id,name\n1,Anna\n")
    os.replace(other, users)
    assert names(made, 1) == ["Anna"]
    users.unlink()
    with pytest.raises(SourceAway, match="there is no file"):
        names(made, 1)


WRONG = [
    ("CREATE TABLE users AS SELECT * FROM read_csv('{other}')", 'annot access file ".*other.csv"'),
    ("CREATE TABLE user AS SELECT 1 AS id", "the SQL makes no table 'users'"),
    ("CREATE TABLE users AS SELECT 1 AS id; COPY users TO '{users}'", "COPY, and makes no table"),
    ("ATTACH '{users}' AS db", "ATTACH, and makes no table"),
    ("CREATE TABLE users AS SELEC", "syntax error"),
    ("CREATE TABLE users AS SELECT * FROM read_csv('https://host/x.csv')", "annot access file"),
]


@pytest.mark.parametrize(("sql", "says"), WRONG, ids=[each[0] for each in WRONG])
def test_what_it_cannot_do(tmp_path, sql, says):
    users, other = tmp_path / "users.csv", tmp_path / "other.csv"
    for file in (users, other):
        file.write_text("id\n1\n")
    with pytest.raises(SourceUnfit, match=says):
        running(sql.format(users=users, other=other), [users])
    assert users.read_text() == "id\n1\n"
