"""What a Spark master says by its name."""

import os
import re


def is_local(master: str) -> bool:
    """Tell whether tasks run in the process of the driver.

    >>> is_local("local[2]"), is_local("local-cluster[2,1,512]"), is_local("yarn")
    (True, False, False)
    """
    return re.fullmatch(r"local(\[.*\])?", master) is not None


def cores(master: str) -> int:
    """Return how many tasks run at once under a local master; elsewhere the least useful number.

    >>> cores("local[3]"), cores("local"), cores("spark://host:7077")
    (3, 1, 2)
    """
    if master == "local":
        return 1
    if found := re.fullmatch(r"local\[(\*|\d+)(?:,\s*\d+)?\]", master):
        return (os.cpu_count() or 1) if found[1] == "*" else int(found[1])
    return 2
