"""The filters that templates may use: an allow-list, each bounded.

Every filter is wrapped: what goes in and what comes out is measured, and the work is charged to the merge. That bounds
all filters whose result grows with their input; `replace` and `join` can multiply two inputs, so they look before they
build. Not on the list are what switches escaping off (`safe`), what is slow by nature (`uniq`, `strip_html`), and
whatever a message has no use for. `date` is ours: the library's reads the clock for "now" and the zone of the host, and
a message must be the same bytes at every retry (I-15).

Pure functions. Limits are in `limit`; tags and the count of steps are in `language`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import wraps
from typing import Any, Final, Protocol

from liquid import soft_str
from liquid.builtin.filters.array import join as library_join
from liquid.exceptions import FilterArgumentError
from liquid.filter import string_filter, with_context

from clarion.adapters.renderers.limit import VALUE_MAX, TooMuch, measure

FilterFunction = Callable[..., Any]  # as in the library: filters take and give whatever a template has

FROM_THE_LIBRARY: Final = frozenset(
    {
        *("append", "capitalize", "downcase", "escape", "lstrip", "newline_to_br", "prepend", "remove", "rstrip"),
        *("slice", "split", "squish", "strip", "strip_newlines", "truncate", "truncatewords", "upcase", "url_encode"),
        *("compact", "concat", "first", "last", "map", "reverse", "size", "sort", "sum", "where"),
        *("abs", "at_least", "at_most", "ceil", "divided_by", "floor", "minus", "modulo", "plus", "round", "times"),
        "default",
    }
)

FILTER_STEPS: Final = 10
"""Steps charged for every use of a filter, however small its values: as many as ten characters of a loop's body."""

_SHARE: Final = 4
"""Characters and elements that a filter may take and give for one step. Strings are handled by compiled code, while the
elements of a list are measured one by one."""

_SUM_WEIGHT: Final = 8
"""How many times the others' steps `sum` is charged: it makes a decimal of every element."""


class DateRefused(FilterArgumentError):
    """A value that is no date, or a form that there is not; the text is ours and repeats no data."""


class Charged(Protocol):
    """What a merge counts its work with."""

    def spend(self, steps: int) -> None:
        """Count steps, and stop with TooMuch where there are none left."""
        ...


def bounded_filters(library: Mapping[str, FilterFunction]) -> dict[str, FilterFunction]:
    """Return the allowed filters by name, each bounded."""
    allowed = {name: library[name] for name in FROM_THE_LIBRARY} | {"replace": replace, "join": join, "date": date}
    return {name: _bounded(function, weight=_SUM_WEIGHT if name == "sum" else 1) for name, function in allowed.items()}


def _bounded(function: FilterFunction, *, weight: int) -> FilterFunction:
    """Wrap a filter so that its values are measured and its work is charged."""

    @wraps(function)  # keeps the mark by which some ask for the environment
    def bounded(left: object, *args: object, context: Charged, **options: object) -> object:
        size = measure(left) + sum(map(measure, args)) + sum(map(measure, options.values()))
        context.spend(FILTER_STEPS + weight * size // _SHARE)
        result: object = function(left, *args, **options)
        context.spend(measure(result) // _SHARE)
        return result

    return with_context(bounded)


@string_filter
def replace(text: str, old: object, new: object = "") -> str:
    """Replace every occurrence, unless the result would be too large."""
    old, new = soft_str(old), soft_str(new)
    if len(text) + text.count(old) * (len(new) - len(old)) > VALUE_MAX:
        raise TooMuch("replace would make a value that is too large", token=None)
    return text.replace(old, new)


@wraps(library_join)
def join(items: object, separator: object = " ", **options: object) -> object:
    """Join the items of a list, unless the result would be too large."""
    if isinstance(items, list | tuple) and len(items) * len(str(separator)) > VALUE_MAX:
        raise TooMuch("join would make a value that is too large", token=None)
    return library_join(items, separator, **options)


_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

_DIRECTIVE: Final = re.compile(r"%(-?)(.)", re.DOTALL)

_DIRECTIVES: Final[Mapping[str, Callable[[datetime], str]]] = {
    "Y": lambda at: f"{at.year:04}",
    "y": lambda at: f"{at.year % 100:02}",
    "m": lambda at: f"{at.month:02}",
    "B": lambda at: _MONTHS[at.month - 1],
    "b": lambda at: _MONTHS[at.month - 1][:3],
    "d": lambda at: f"{at.day:02}",
    "e": lambda at: f"{at.day}",
    "A": lambda at: _DAYS[at.weekday()],
    "a": lambda at: _DAYS[at.weekday()][:3],
    "H": lambda at: f"{at.hour:02}",
    "I": lambda at: f"{(at.hour - 1) % 12 + 1:02}",
    "M": lambda at: f"{at.minute:02}",
    "S": lambda at: f"{at.second:02}",
    "p": lambda at: "AM" if at.hour < 12 else "PM",
    "%": lambda _: "%",
}


def date(value: object, form: object = "%Y-%m-%d") -> str:
    """Write an ISO 8601 date or time, or seconds since 1970 in UTC, in a form such as `%-d %B %Y`."""
    at = _instant(value)

    def written(found: re.Match[str]) -> str:
        directive = _DIRECTIVES.get(found[2])
        if directive is None:
            raise DateRefused(
                f"date knows {', '.join(f'%{name}' for name in _DIRECTIVES)} and the same with a hyphen", token=None
            )
        text = directive(at)
        return text.lstrip("0") or "0" if found[1] else text

    return _DIRECTIVE.sub(written, str(form))


def _instant(value: object) -> datetime:
    """Read a time as it was given, in its own zone; there is no "now" in a message."""
    try:
        if isinstance(value, str):
            return datetime.fromisoformat(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    raise DateRefused("date takes an ISO 8601 date or time, or seconds since 1970", token=None)


def known_filters() -> Sequence[str]:
    """Name the filters that a template may use, for messages and docs."""
    return sorted({*FROM_THE_LIBRARY, "replace", "join", "date"})
