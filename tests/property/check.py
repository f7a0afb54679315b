"""One question: do the engine and the oracle differ, and where?"""

import traceback

from kaflow_engine.errors import KaflowError
from tests.property.executor import How, Seen, seen_by_engine, seen_by_oracle
from tests.property.scenario import Scenario


def difference(scenario: Scenario, how: How) -> str | None:
    """Run a scenario both ways; None where all is the same."""
    said = scenario.interpret()
    try:
        actual = seen_by_engine(scenario, said, how)
    except KaflowError as error:
        return f"the engine ends with {type(error).__name__}: {error}"
    except Exception:
        return f"the engine breaks: {traceback.format_exc()}"
    return compare(seen_by_oracle(scenario, said), actual)


def compare(wanted: Seen, got: Seen) -> str | None:
    """Say in which way the engine's view differs from the oracle's."""
    if wanted.stops != got.stops or len(wanted.rows) != len(got.rows):
        return f"batches done: {len(got.rows)}, expected {len(wanted.rows)}"
    for number, (want, have) in enumerate(zip(wanted.rows, got.rows, strict=True), 1):
        if want != have:
            return f"rows of batch {number}: {have}\nexpected: {want}"
    letters = zip(wanted.dead_letters, got.dead_letters, strict=True)
    for number, (want, have) in enumerate(letters, 1):
        if want != have:
            return f"dead letters of batch {number}: {have}\nexpected: {want}"
    if wanted.counters != got.counters and not wanted.stops:
        return f"counters: {got.counters}\nexpected: {wanted.counters}"
    if wanted.watermarks != got.watermarks:
        return f"watermarks: {got.watermarks}\nexpected: {wanted.watermarks}"
    return None
