"""What flows of the tests of operators write."""

# pyright: basic


class Written(list):
    """Rows that several tasks wrote, key, event time and values: those of one key are in order,
    those of others in any."""

    def __eq__(self, other):
        return sorted(self, key=_key) == sorted(other, key=_key)

    __hash__ = None

    def __add__(self, other):
        return Written([*self, *other])


def _key(row):
    return str(row[:-2])


def letter_of(row):
    """The phase, the message and the bytes of a dead letter."""
    headers = {h["key"]: (h["value"] or b"").decode() for h in row["headers"]}
    return headers["kaflow.phase"], headers["kaflow.message"], row["value"]


def count_entries(flow, pipeline, kinds):
    """How many entries the states of operators hold, of those that are of some classes."""
    states = [
        pipeline._world.state((operator.state, part))
        for operator in flow.operators
        if isinstance(operator, kinds)
        for part in range(flow.partitions)
    ]
    return sum(len(state.range(b"\0", None).keys) for state in states)
