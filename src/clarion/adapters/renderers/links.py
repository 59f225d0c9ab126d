"""Where the links of a mail lead: where its author wrote, and by https, mailto or tel where the data decides.

A link whose beginning stands in the template is its author's, whatever its scheme. Where the beginning comes from the
data, `javascript:` and `data:` would run what a stranger wrote, and what `http:` shows can be changed by anybody on the
way; a template that wants `http:` says so itself, as in `<a href="http://{{ host }}">`. The HTML is judged as it was
merged, so it does not matter by which tags and filters a link was put together. What a client follows by itself is
judged like what a click follows: pictures, forms, `url()` in a style, a page that leads on.

Where nobody can tell what data would mean (outside of quotes, in a script), a template that has it is not published.

Pure functions over text.
"""

import re
from collections.abc import Collection, Iterator
from html import unescape
from typing import Final

import msgspec

from clarion.adapters.renderers.variables import LIQUID
from clarion.ports.renderer import TemplateMistake

SCHEMES: Final = ("https:", "mailto:", "tel:")
"""By which a link from the data may lead."""

LINKS: Final = frozenset(
    {
        *("href", "xlink:href", "action", "formaction", "src", "srcset", "poster", "background", "data", "ping"),
        *("cite", "codebase", "classid", "dynsrc", "longdesc", "lowsrc", "manifest", "profile", "usemap"),
    }
)
"""The attributes that hold links; beside them the styles, and the `content` of what leads on (`<meta http-equiv>`)."""

Link = tuple[str, str]
"""The attribute that a link stands in, and the link or how it begins."""


class Written(msgspec.Struct, frozen=True):
    """What a template whose data writes links wrote itself.

    `begins` is how its own links begin. `places` finds the values of the attributes that data begins, where data stands
    nowhere else; then no other can change, because data in quotes is escaped and stays in them.
    """

    begins: frozenset[Link]
    places: re.Pattern[str] | None


_TAG: Final = re.compile(r"""<([a-zA-Z][^\s/>"']*)((?:[^>"']|"[^"]*"|'[^']*')*)>""")
ATTRIBUTE: Final = re.compile(r"""([^\s"'<>/=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?""")
_REFRESH: Final = re.compile(r"[^;,]*[;,]\s*(?:url\s*=\s*)?['\"]?(.*)", re.DOTALL | re.IGNORECASE)

_CSS_ESCAPE: Final = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|(.))", re.DOTALL)
_CSS_COMMENT: Final = re.compile(r"/\*.*?(?:\*/|$)", re.DOTALL)
_CSS_LINK: Final = re.compile(r"(?:url|src|image|image-set)\(\s*['\"]?([^'\")]*)", re.IGNORECASE)

WRITES: Final = re.compile(r"\{\{|\{%-?\s*(?:echo|cycle)\b")
_DATA: Final = "\0"
"""Stands for Liquid while attributes are looked for, because Liquid may hold quotes."""

_OURS: Final = "https://ours/"
"""Stands for a variable that is a link of the definition: where it leads is its author's decision."""

_VARIABLE: Final = re.compile(r"\{\{-?\s*(\w+)\s*-?\}\}", re.ASCII)

_SIMPLE: Final = LINKS - {"srcset"}
"""Attributes whose whole value is one link."""

_DECIDES: Final = re.compile(r"[:/?#]")
"""What ends a scheme, or shows that there is none: behind it the data cannot choose one."""

_IGNORED: Final = re.compile(r"[\x00-\x20\x7f-\xa0]+")
"""Blanks and control characters, which clients leave out before they look for a scheme."""

_CODE: Final = re.compile(r"<(mj-style|style|script)\b[^>]*>(.*?)</\1", re.DOTALL | re.IGNORECASE)


def wrong_places(source: str, *, file: str) -> Iterator[TemplateMistake]:
    """Name the places of a template in which it puts data though no merge can tell what it would mean."""
    masked = LIQUID.sub(_same_length, source)
    for code in _CODE.finditer(masked):
        if _DATA in code[2]:
            yield _misplaced(source, code.start(2) + code[2].index(_DATA), f"in <{code[1]}>", file=file)
    for tag in _TAG.finditer(masked):
        for found in ATTRIBUTE.finditer(masked, tag.start(2), tag.end(2)):
            name, where = found[1].lower(), f"in <{tag[1]}>, outside of quotes"
            if _DATA in found[1] or _DATA in (found[4] or ""):
                yield _misplaced(source, found.start(), where, file=file)
                continue
            is_code = name.startswith("on") or name in ("srcdoc", "http-equiv")
            if is_code and _DATA in found[0]:
                yield _misplaced(source, found.start(), f"in the attribute {name}", file=file)


def written_links(source: str, ours: Collection[str] = ()) -> Written | None:
    """Give what the template wrote of its links itself, or None where none is left to the data.

    `ours` names variables whose links are the definition's, and so its author's.
    """
    begins: set[Link] = set()
    masked = LIQUID.sub(lambda liquid: _OURS if _VARIABLE.sub(r"\1", liquid[0]) in ours else _DATA, source)
    is_loose = any(_has_loose_data(tag) for tag in _TAG.finditer(masked))
    from_data: set[str] = set()
    for attribute, value in _links(masked):
        begin, liquid, _ = value.partition(_DATA)
        if liquid and not _DECIDES.search(begin):
            from_data.add(attribute)
        elif begin:
            begins.add((attribute, begin))
    if not from_data and not is_loose:
        return None
    is_plain = not is_loose and from_data <= _SIMPLE
    names = "|".join(sorted(from_data))
    places = re.compile(rf"""\s({names})\s*=\s*(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE) if is_plain else None
    return Written(frozenset(begins), places)


def find_wrong_link(html: str, written: Written, *, public_url: str | None = None) -> str | None:
    """Name the attribute of a link in merged HTML that data wrote, by a scheme that it may not choose.

    Links to this installation are right too, which may have no https on the machine of a developer.
    """
    begins = written.begins
    if public_url:
        begins |= {(attribute, f"{public_url}/") for attribute in (*LINKS, "style")}
    if written.places is not None and all(
        _is_right(name.lower(), unescape(quoted or single), begins)
        for name, quoted, single in written.places.findall(html)
    ):
        return None  # nearly always; what looks wrong may be mere text, and is read more exactly below
    return next((name for name, link in _links(html) if not _is_right(name, link, begins)), None)


def _is_right(attribute: str, link: str, written: frozenset[Link]) -> bool:
    """Judge one link. One that is empty, or that names a place in the same mail, leads nowhere else."""
    bare = _IGNORED.sub("", link)
    if not bare or bare.lower().startswith(("#", *SCHEMES)):
        return True
    return any(attribute == name and link.startswith(begin) for name, begin in written)


def _links(html: str) -> Iterator[Link]:
    """Give the links of some HTML as a client reads them."""
    for tag in _TAG.finditer(html):
        attributes = [(name.lower(), unescape("".join(values))) for name, *values in ATTRIBUTE.findall(tag[2])]
        leads_on = tag[1].lower() == "meta" and any(name == "http-equiv" for name, _ in attributes)
        for name, value in attributes:
            if name == "style":
                yield from ((name, link) for link in _CSS_LINK.findall(_plain_css(value)))
            elif name == "srcset":
                yield from ((name, one.split(maxsplit=1)[0]) for one in value.split(",") if one.strip())
            elif name == "content" and leads_on:
                yield from ((name, found[1]) for found in [_REFRESH.match(value)] if found)
            elif name in LINKS:
                yield name, value


def _has_loose_data(tag: re.Match[str]) -> bool:
    """Tell whether data may write links of its own into a tag: outside of quotes, or in a style."""
    return any(
        _DATA in name or _DATA in bare or (name.lower() == "style" and _DATA in quoted + single)
        for name, quoted, single, bare in ATTRIBUTE.findall(tag[2])
    )


def _plain_css(style: str) -> str:
    """Give a style without what hides its words: escapes and comments."""

    def plain(found: re.Match[str]) -> str:
        number = int(found[1], 16) if found[1] else 0
        return found[2] or (chr(number) if 0 < number <= 0x10FFFF else "")

    return _CSS_ESCAPE.sub(plain, _CSS_COMMENT.sub("", style))


def _same_length(liquid: re.Match[str]) -> str:
    """Put data, or blanks for Liquid that writes nothing, in the place of a piece of Liquid."""
    return (_DATA if WRITES.match(liquid[0]) else " ") * len(liquid[0])


def _misplaced(source: str, position: int, where: str, *, file: str) -> TemplateMistake:
    return TemplateMistake(
        f"data {where} could mean anything, and cannot be judged",
        field=file,
        line=source.count("\n", 0, position) + 1,
        position=position,
        hint='put it into the quotes of another attribute, as in title="{{ name }}", or between the elements',
    )
