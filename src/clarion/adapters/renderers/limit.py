"""How much a template may be, hold and do (X-15), and how a value is measured against it.

python-liquid bounds loops by their nesting, output by its bytes and variables by their shallow size; it bounds neither
what a filter builds on the way nor how long all of it takes. So every value that is read and that a filter takes or
gives is measured here, and work is counted in steps. Steps, unlike seconds, are the same on every machine and at every
retry.

Reads and writes nothing. Where the limits are applied: `language` and `filters`.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from liquid.exceptions import LoopIterationLimitError, OutputStreamLimitError, ResourceLimitError

TEMPLATE_BYTES_MAX: Final = 64 * 1024
"""One template file. Mail clients cut a mail off at some 100 kB of HTML, and MJML makes several bytes of each."""

HTML_BYTES_MAX: Final = 256 * 1024
"""The HTML that MJML makes of one template. A template within its limit that makes more only repeats itself."""

OUTPUT_BYTES_MAX: Final = 512 * 1024
"""One rendered part: twice the largest template, and more than any client shows."""

VALUE_MAX: Final = 128 * 1024
"""One value inside an expression, and all data of a message: characters and elements together."""

LOCALS_MAX: Final = 4 * VALUE_MAX
"""All that a template assigns and captures."""

NUMBER_MAX: Final = 2**63
"""No message needs a larger integer, and squaring one again and again would double its digits every time."""

STEPS_MAX: Final = 100_000
"""Work for merging one message on one channel; checking a request at the door has as many again for each channel.

Counted are the Liquid of loop bodies in every round, the size of a variable at every read, and what filters take and
give. A table of two hundred rows with filters in each needs some 40,000 steps. The slowest work that was found (writing
long lists, missing variables) takes half a microsecond a step on the machine of the benchmark, so 50 ms in all."""

LOOK_STEPS_MAX: Final = 5000
"""Work on a merge that the event loop waits for: 2.5 ms at most, and a fraction of that for an ordinary mail."""

LOOP_MAX: Final = 10_000
"""Rounds of all loops, those of inner loops multiplied; a mail cannot hold so many rows."""

NESTING_MAX: Final = 20
"""Blocks inside each other, and scopes while they are rendered."""

EXPRESSION_CHARS_MAX: Final = 1000
"""Characters between `{{` and `}}`, which also bounds how deep an expression can be nested."""

BLANKS_MAX: Final = 100
"""Blanks in a row between `{{` and `}}`: the time of the library's patterns grows with the square of their number."""


class TooMuch(ResourceLimitError):
    """A value or the work on it goes beyond a limit."""


def said_of(error: ResourceLimitError) -> str:
    """Say which limit was met; the library's own limits speak of streams and iterations."""
    match error:
        case TooMuch():
            return str(error.message)
        case OutputStreamLimitError():
            return f"it becomes longer than {OUTPUT_BYTES_MAX} bytes"
        case LoopIterationLimitError():
            return f"its loops have more than {LOOP_MAX} rounds"
        case _:
            return "the template does too much work"


class Budget:
    """The steps of one piece of work: all parts of a channel that are merged, or of a message that are tried."""

    __slots__ = ("_steps_max", "spent")

    def __init__(self, steps_max: int = STEPS_MAX) -> None:
        """Start with nothing spent."""
        self._steps_max = steps_max
        self.spent = 0

    @property
    def is_spent(self) -> bool:
        """Whether more was asked for than there was."""
        return self.spent > self._steps_max

    def spend(self, steps: int) -> None:
        """Count steps, and stop with TooMuch where there are none left."""
        self.spent += steps
        if self.spent > self._steps_max:
            raise TooMuch("the template does too much work", token=None)


def measure(value: object, *, size_max: int = VALUE_MAX) -> int:
    """Count the characters and elements of a value however deep, and stop with TooMuch at the limit."""
    kind = type(value)
    if kind is str and len(value) < size_max:  # type: ignore[arg-type]  # here and below: nearly always
        return 1 + len(value)  # type: ignore[arg-type]
    if kind is int and -NUMBER_MAX <= value <= NUMBER_MAX:  # type: ignore[operator]
        return 1
    size = 0
    waiting = [value]
    while waiting:
        item = waiting.pop()
        size += 1
        if isinstance(item, (str, list, tuple, dict, range)):
            size += len(item)
        elif isinstance(item, (int, float)) and not abs(item) <= NUMBER_MAX:  # refuses NaN too
            raise TooMuch("a number is too large", token=None)
        if size > size_max:
            raise TooMuch(f"a value is larger than {size_max}", token=None)
        if isinstance(item, (list, tuple, dict)):
            waiting += item
            waiting += item.values() if isinstance(item, dict) else ()
    return size


def check_data(data: Mapping[str, object]) -> int:
    """Refuse data that is too large, or anything but what JSON has: an object with attributes is no data (X-14).

    Returns its size, as `measure` counts it. This is done for every merge, so it looks at each value once.
    """
    size = 1 + len(data)
    waiting: list[object] = [*data, *data.values()]
    while waiting:
        item = waiting.pop()
        size += 1
        kind = type(item)
        if kind is str:
            size += len(item)  # type: ignore[arg-type]  # it is text
        elif kind is dict:
            size += len(item)  # type: ignore[arg-type]  # it is a table
            waiting += item  # type: ignore[arg-type]  # its names
            waiting += item.values()  # type: ignore[attr-defined]
        elif kind is list:
            size += len(item)  # type: ignore[arg-type]  # it is a list
            waiting += item  # type: ignore[arg-type]
        elif kind is int or kind is float:
            if not abs(item) <= NUMBER_MAX:  # type: ignore[arg-type]  # refuses NaN too
                raise TooMuch("a number is too large", token=None)
        elif kind is not bool and item is not None:
            raise TooMuch(f"the data holds a {kind.__name__}, which JSON does not have", token=None)
        if size > VALUE_MAX:
            raise TooMuch(f"a value is larger than {VALUE_MAX}", token=None)
    return size


def has_header_sign(data: Mapping[str, object]) -> bool:
    """Tell whether any text in the data has a line break or another sign that a header may not take.

    Names of fields count too.
    """
    return any(type(item) is str and _BREAK.search(item) is not None for item in _walk(dict(data)))


def _walk(value: object) -> Iterator[object]:
    """Give a value and all in it; a list is opened only when the next item is asked for."""
    waiting: list[object] = [value]
    while waiting:
        item = waiting.pop()
        yield item
        if isinstance(item, (list, tuple)):
            waiting.extend(item)
        elif isinstance(item, dict):
            waiting.extend(item)
            waiting.extend(item.values())


_BREAK: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]|\?")
"""Whatever `str.splitlines` splits at, whatever else no header may hold, and what every encoded word has."""

_PLAIN: Final = frozenset({dict, list, str, int, float, bool, type(None)})
