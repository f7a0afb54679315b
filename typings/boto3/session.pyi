# A client is made at run time from the description of a service: there is nothing to declare.
from typing import Any

class Session:
    def client(self, service_name: str, **settings: Any) -> Any: ...
