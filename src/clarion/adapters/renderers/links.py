"""Where the links of a mail lead: where its author wrote, and by https, mailto or tel where the data decides.

A link whose beginning stands in the template is its author's, whatever its scheme. Where the beginning comes from the
data, `javascript:` and `data:` would run what a stranger wrote, and what `http:` shows can be changed by anybody on the
way; a template that wants `http:` says so itself, as in `<a href="http://{{ host }}">`. The HTML is judged as it was
merged, so it does not matter by which tags and filters a link was put together.

Pure functions over text.
"""

import re
from collections.abc import Iterator
from html import unescape
from typing import Final

from clarion.adapters.renderers.variables import LIQUID

SCHEMES: Final = ("https:", "mailto:", "tel:")
"""By which a link from the data may lead."""

_TAG: Final = re.compile(r"""<[a-zA-Z](?:[^>"']|"[^"]*"|'[^']*')*>""")

_LINK: Final = re.compile(r"""\b(?:href|action)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)
"""The attributes that a click follows."""

_DATA: Final = "\0"
"""Stands for Liquid while attributes are looked for, because Liquid may hold quotes."""

_DECIDES: Final = re.compile(r"[:/?#]")
"""What ends a scheme, or shows that there is none: behind it the data cannot choose one."""

_IGNORED: Final = re.compile(r"[\x00-\x20\x7f-\xa0]+")
"""Blanks and control characters, which clients leave out before they look for a scheme."""


def written_links(source: str) -> frozenset[str] | None:
    """Give how the links begin that the template wrote itself, or None where none is left to the data."""
    begins: set[str] = set()
    from_data = False
    for value in _links(LIQUID.sub(_DATA, source)):
        begin, liquid, _ = value.partition(_DATA)
        if liquid and not _DECIDES.search(begin):
            from_data = True
        elif begin:
            begins.add(begin)
    return frozenset(begins) if from_data else None


def has_wrong_link(html: str, written: frozenset[str]) -> bool:
    """Tell whether merged HTML has a link that the template did not write, by a scheme that data may not choose."""
    return not all(_is_right(link, tuple(written)) for link in _links(html))


def _is_right(link: str, written: tuple[str, ...]) -> bool:
    """Judge one link. One that is empty, or that names a place in the same mail, leads nowhere else."""
    bare = _IGNORED.sub("", link)
    return not bare or bare.lower().startswith(("#", *SCHEMES)) or link.startswith(written)


def _links(html: str) -> Iterator[str]:
    """Give the links of some HTML as a client reads them."""
    for tag in _TAG.findall(html):
        for groups in _LINK.findall(tag):
            yield unescape("".join(groups))
