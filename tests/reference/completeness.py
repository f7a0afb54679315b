"""When a row may leave a step (section 3, Steps) and when it never can."""

from tests.reference.chain import OracleChain
from tests.reference.conditions import Term, Values
from tests.reference.pipeline import Step


class Completeness:
    """What each step demands of a row, worked out once.

    A step is *needed* when it is INNER, or is a later one and feeds a required column or the key of
    a needed step: its key then counts as required in the steps before it.
    """

    def __init__(self, chain: OracleChain) -> None:
        self._chain = chain
        self._steps = chain.steps
        self._driving = chain.driving
        self._required = chain.required()
        self._keys: list[Term] = []
        for number, step in reversed(list(enumerate(self._steps))):
            own = {join.alias for join in step.joins}
            feeds = {column.alias for column in self._keys}
            feeds |= {term.alias for term in self._required}
            later = number > 0 and bool(own & feeds)
            if later or any(join.inner for join in step.joins):
                self._keys.extend(step.key)

    def inner_matched(self, step: Step, values: Values) -> bool:
        """Tell whether the INNER sides of a step have matched."""
        return all(values[join.alias] is not None for join in step.joins if join.inner)

    def waits_keyless(self, step: Step) -> bool:
        """Tell whether a row without a key waits until its time is up."""
        if self._chain.emission == "final":
            return True
        waits = any(map(self._chain.waits_for, step.joins))
        return waits and not any(join.inner for join in step.joins)

    def may_leave(self, step: Step, values: Values) -> bool:
        """Tell whether a row may leave a step."""
        own = {join.alias for join in step.joins}
        if self._chain.filters:
            return self.inner_matched(step, values)
        return (
            self.inner_matched(step, values)
            and all(values[j.alias] is not None for j in step.joins if self._chain.waits_for(j))
            and all(term.of(values) is not None for term in self._required if term.alias in own)
            and all(c.of(values) is not None for c in self._keys if c.alias in own)
        )

    def never(self, values: Values) -> bool:
        """Tell whether the driving side alone makes every row incomplete for ever."""
        if self._chain.filters:
            return False
        missing = [term for term in (*self._required, *self._keys) if term.of(values) is None]
        return any(term.alias == self._driving for term in missing)
