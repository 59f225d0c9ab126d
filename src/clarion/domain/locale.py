"""Which of a notification's languages somebody gets.

A locale is a language tag such as `de`, `de-AT` or `zh-Hant-TW`; its parents are what is left when parts are taken off
its end. Whoever may want a locale is asked in turn: the send, the person, the business unit, the tenant. The first of
them for whose locale, or a parent of it, there are texts decides; if there is none, the type's default does. Upper and
lower case do not matter, and neither does `_` for `-`, since profiles come from many systems.

Pure. Dates and numbers are written in a locale by the renderer.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

_LOCALE: Final = re.compile(r"[a-z]{2,3}(-[A-Z][a-z]{3})?(-([A-Z]{2}|[0-9]{3}))?", re.ASCII)

SIZE_MAX: Final = 35
"""Characters of a tag that are looked at: RFC 5646 has all that implementations take fit into so many."""


def choose(wanted: Sequence[str | None], have: Sequence[str]) -> str:
    """Return the locale of `have` whose texts somebody gets, the first of them being the default; "" if there is none.

    `wanted` is what the send, the person, the business unit and the tenant want, in that order; None and what is no
    locale want nothing.
    """
    return _found(wanted, have)[0]


def resolve(wanted: Sequence[str | None], have: Sequence[str]) -> str:
    """Return the locale that a row carries: of the same language as the texts of `choose`, with its country if known.

    Somebody who wants `de-AT` gets the texts of `de`, and dates and numbers as they are written in Austria.
    """
    chosen, asked = _found(wanted, have)
    return asked or chosen


def parents(locale: str) -> Iterator[str]:
    """Give a locale and its parents, the nearest first: `zh-Hant-TW`, `zh-Hant`, `zh`."""
    while locale:
        yield locale
        locale = locale.rpartition("-")[0]


def normal(locale: str) -> str | None:
    """Write a locale as we do, such as `de-AT` for `DE_at`, or return None where it is none."""
    if len(locale) > SIZE_MAX:
        return None
    language, *others = locale.replace("_", "-").split("-")
    written = "-".join([language.lower(), *(one.title() if len(one) == 4 else one.upper() for one in others)])
    return written if _LOCALE.fullmatch(written) else None


def _found(wanted: Sequence[str | None], have: Sequence[str]) -> tuple[str, str]:
    """Return the locale of the texts, and the wanted locale that led to it; "" where none did."""
    by_name = {one.lower(): one for one in reversed(have)}
    for one in wanted:
        asked = normal(one) if one else None
        for parent in parents(asked or ""):
            if parent.lower() in by_name:
                return by_name[parent.lower()], asked or ""
    return (have[0] if have else ""), ""
