"""The filters that templates may use: an allow-list, each bounded.

Every filter is wrapped: what goes in and what comes out is measured, and the work is charged to the merge. That bounds
all filters whose result grows with their input; `replace` and `join` can multiply two inputs, so they look before they
build. Not on the list are what switches escaping off (`safe`), what is slow by nature (`uniq`, `strip_html`), and
whatever a message has no use for. What writes dates, numbers and money is ours, in `formats`: the library's `date`
reads the clock for "now" and the zone of the host, and a message must be the same bytes at every retry (I-15).

Pure functions. Limits are in `limit`; tags and the count of steps are in `language`.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, Final, Protocol

from liquid import soft_str
from liquid.builtin.filters.array import join as library_join
from liquid.filter import string_filter, with_context

from clarion.adapters.renderers.formats import FORMATS, FORMS, Writing, as_date
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

FORMAT_STEPS: Final = 60
"""The same for a filter that writes as a locale does: the slowest takes 30 microseconds. A date by a form with `%` is
charged as every other filter, as it was before there were locales."""

_SHARE: Final = 4
"""Characters and elements that a filter may take and give for one step. Strings are handled by compiled code, while the
elements of a list are measured one by one."""

_SUM_WEIGHT: Final = 8
"""How many times the others' steps `sum` is charged: it makes a decimal of every element."""


class Charged(Protocol):
    """What a merge counts its work with, and how it writes."""

    writing: Writing

    def spend(self, steps: int) -> None:
        """Count steps, and stop with TooMuch where there are none left."""
        ...


def bounded_filters(library: Mapping[str, FilterFunction]) -> dict[str, FilterFunction]:
    """Return the allowed filters by name, each bounded."""
    allowed = {name: library[name] for name in FROM_THE_LIBRARY} | {"replace": replace, "join": join}
    bounded = {
        name: _bounded(function, weight=_SUM_WEIGHT if name == "sum" else 1) for name, function in allowed.items()
    }
    return bounded | {name: _bounded_format(function) for name, function in FORMATS.items()}


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


def _bounded_format(function: FilterFunction) -> FilterFunction:
    """Wrap a filter that writes in the merge's locale and zone; what it writes is short."""

    def bounded(left: object, *args: object, context: Charged, **options: object) -> object:
        size = measure(left) + sum(map(measure, args)) + sum(map(measure, options.values()))
        is_light = function is as_date and (not args or args[0] not in FORMS)
        context.spend((FILTER_STEPS if is_light else FORMAT_STEPS) + size // _SHARE)
        result: object = function(left, *args, writing=context.writing, **options)
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


def known_filters() -> Sequence[str]:
    """Name the filters that a template may use, for messages and docs."""
    return sorted({*FROM_THE_LIBRARY, "replace", "join", *FORMATS})
