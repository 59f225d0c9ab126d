"""What a check against a JSON Schema takes, counted before it is made.

One unit is some 12 ns, which is what one subschema takes for one value. Three things take more, and a small schema can
have many of them: the words and numbers of `enum` and `const`, each of which is compared with a value; numbers, for a
comparison with a fraction takes more than a microsecond; and regular expressions, which are linear in the text but also
in their own states, `{1000}` being a thousand of them. The figures were measured with the library. Pure.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

FRACTION: Final = 120
"""Units for comparing a number with a fraction: 1.4 µs."""

WHOLE: Final = 20
"""Units for comparing a number with a whole one: 0.25 µs where the other is a fraction."""

STATES_PER_UNIT: Final = 4
"""States of a regular expression that a character passes in one unit, where it passes all of them."""

STATES_MAX: Final = 10**9
"""Where counting states ends; a thousandth of that is refused."""

_COMPARED: Final = frozenset({"enum", "const", "required", "dependentRequired"})
_BOUNDS: Final = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})

_PIECES: Final = re.compile(
    r"""\\[pP]\{[^}]*+\}? | \\.? | \[(?:\\.|[^\]\\])*+\]? | \{(?P<least>\d{1,9})(?:,(?P<most>\d{0,9}))?\} | .""",
    re.DOTALL | re.VERBOSE,
)
"""An escape, a class of characters, how often the piece before it is repeated, or one character."""


class Amount(msgspec.Struct, frozen=True):
    """What some data has that a schema is held against."""

    size: int
    """Its characters and elements, counted as in `limit.measure`."""
    values: int
    """Its values and names."""
    numbers: int

    @classmethod
    def of(cls, data: object) -> "Amount":
        """Count what data has."""
        size = values = numbers = 0
        waiting = [data]
        while waiting:
            item = waiting.pop()
            values += 1
            if isinstance(item, str):
                size += len(item)
            elif isinstance(item, Mapping):
                size += len(item)
                waiting += item
                waiting += item.values()
            elif isinstance(item, Sequence):
                size += len(item)
                waiting += item
            elif isinstance(item, (int, float)):
                numbers += 1
        return cls(size + values, values, numbers)


class Weight(msgspec.Struct, frozen=True):
    """What a schema has that data is held against, in units."""

    sized: int = 0
    """For each character and element of the data."""
    compared: int = 0
    """For each value."""
    numeric: int = 0
    """For each number."""

    def __add__(self, other: "Weight") -> "Weight":
        """Have both."""
        return Weight(self.sized + other.sized, self.compared + other.compared, self.numeric + other.numeric)

    def cost(self, amount: Amount) -> int:
        """Say what a check takes at worst: where every value meets every subschema."""
        return self.sized * amount.size + self.compared * amount.values + self.numeric * amount.numbers


def weight_of(schema: Mapping[str, object]) -> Weight:
    """Weigh a subschema without those in it."""
    weight = Weight(sized=1)
    for keyword, value in schema.items():
        if keyword in _COMPARED:
            weight += _compared(value)
        elif keyword in _BOUNDS:
            weight += Weight(numeric=_number(value))
        elif keyword == "pattern":
            weight += _pattern(value)
        elif keyword == "patternProperties" and isinstance(value, Mapping):
            for name in value:
                weight += _pattern(name)
    return weight


def _compared(value: object) -> Weight:
    """Weigh words and numbers that values are compared with, however deep."""
    compared = numeric = 0
    waiting = [value]
    while waiting:
        item = waiting.pop()
        compared += 1
        numeric += _number(item)
        if isinstance(item, str):
            compared += len(item)
        elif isinstance(item, Mapping):
            waiting += item
            waiting += item.values()
        elif isinstance(item, Sequence):
            waiting += item
    return Weight(compared=compared, numeric=numeric)


def _number(value: object) -> int:
    if isinstance(value, float):
        return FRACTION
    return WHOLE if isinstance(value, int) and not isinstance(value, bool) else 0


def _pattern(pattern: object) -> Weight:
    return Weight(sized=states_of(pattern) // STATES_PER_UNIT) if isinstance(pattern, str) else Weight()


def states_of(pattern: str) -> int:
    """Count the states of a regular expression with its bounded repeats written out, also those inside each other."""
    outer: list[int] = []  # the states before each group that is open
    states = last = 0  # those of the innermost group, and of its last piece
    for piece in _PIECES.finditer(pattern):
        if piece["least"] is not None:
            times = max(int(piece["most"] or piece["least"]), 1)
            states, last = states + last * (times - 1), last * times
        elif piece[0] == "(":
            outer.append(states)
            states = last = 0
        elif piece[0] == ")":
            last = states = max(states, 1)
            states += outer.pop() if outer else 0
        else:
            states, last = states + 1, 1
        states, last = min(states, STATES_MAX), min(last, STATES_MAX)
    return min(states + sum(outer), STATES_MAX)
