# What is used of PyMySQL, which ships no types.
from typing import Any

from pymysql.connections import Connection

class MySQLError(Exception): ...

def connect(**settings: Any) -> Connection[Any]: ...
