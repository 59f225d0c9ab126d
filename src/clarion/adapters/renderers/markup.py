"""MJML to HTML, once, when a notification is published.

The compiler (mrml, by mjml-python) keeps text where it stands, so Liquid can go through it. Four things it does badly,
and they are done here: it says where an error is only sometimes, it drops an element that it does not know without a
word, it ends the whole process on deep nesting, and it escapes attributes as Rust does (a backslash is doubled, an
invisible character becomes its number). So the elements are checked in one pass that knows the lines, and Liquid,
backslashes and all that is not ASCII are taken out and put back, which also lets a comparison hold a `<`.

Reads and writes nothing; fonts and other files are never fetched or included.
"""

import re
from typing import Final

from mjml import mjml2html

from clarion.adapters.renderers.language import line_of
from clarion.adapters.renderers.limit import HTML_BYTES_MAX
from clarion.adapters.renderers.variables import LIQUID
from clarion.errors import InvalidInput
from clarion.ports.renderer import TemplateMistake

ELEMENTS: Final = frozenset(
    {
        *("mjml", "mj-head", "mj-body", "mj-attributes", "mj-all", "mj-class", "mj-breakpoint", "mj-font"),
        *("mj-preview", "mj-style", "mj-title", "mj-accordion", "mj-accordion-element", "mj-accordion-text"),
        *("mj-accordion-title", "mj-button", "mj-carousel", "mj-carousel-image", "mj-column", "mj-divider"),
        *("mj-group", "mj-hero", "mj-image", "mj-navbar", "mj-navbar-link", "mj-raw", "mj-section", "mj-social"),
        *("mj-social-element", "mj-spacer", "mj-table", "mj-text", "mj-wrapper"),
    }
)

DEPTH_MAX: Final = 50
"""Elements inside each other. A mail has some ten; at a few thousand the compiler's stack overflows."""

# HTML elements that have no end tag; all others, and all of MJML, are closed.
_VOID: Final = frozenset({"area", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"})

_TAKEN_OUT: Final = re.compile(rf"{LIQUID.pattern}|\\+|[^\x00-\x7f]+", re.DOTALL)

_INLINE: Final = re.compile(r"\sinline(?=[\s=/>])", re.IGNORECASE)
_NAME: Final = re.compile(r"[A-Za-z][\w:.-]*")
_UP_TO_A_SIGN: Final = re.compile(r"[^\"'<>]*")
_OTHERS: Final = (("<!--", "-->"), ("<![CDATA[", "]]>"), ("<!", ">"), ("<?", "?>"))
_WHERE: Final = re.compile(r"at position ([0-9]+)")


def compile_mjml(source: str, *, file: str) -> str:
    """Turn MJML with Liquid in it into HTML with the same Liquid, or raise InvalidInput that names file and line."""
    has_body = _check_elements(LIQUID.sub(lambda found: re.sub(r"\S", "x", found[0]), source), file=file)
    begin = "mark"
    while begin in source:
        begin += "k"
    pieces: list[str] = []

    def take_out(found: re.Match[str]) -> str:
        pieces.append(found[0])
        return f"{begin}{len(pieces) - 1}x"

    def put_back(text: str) -> str:
        return re.sub(f"{begin}([0-9]+)x", lambda found: pieces[int(found[1])], text)

    masked = _TAKEN_OUT.sub(take_out, source)
    try:
        # Without fonts: the defaults would have every reader's client ask a third party for them.
        html = put_back(mjml2html(masked, fonts={}))
    except ValueError as error:
        where = _WHERE.search(str(error))
        before = put_back(masked[: int(where[1]) if where else 0])
        raise _wrong(
            file, line_of(before, len(before)), "this is no MJML, or an element stands where it cannot"
        ) from error
    if not has_body:
        raise _wrong(file, 1, "there is no <mj-body> with something in it, so the mail would be empty")
    size = len(html.encode())
    if size > HTML_BYTES_MAX:
        raise InvalidInput(f"it makes {size} bytes of HTML", field=file, hint=f"stay below {HTML_BYTES_MAX}")
    return html


def _check_elements(source: str, *, file: str) -> bool:
    """Go over all elements once: each known, each closed, none too deep; tell whether any is in the body."""
    opened: list[tuple[str, int]] = []
    position, has_body = 0, False
    while (start := source.find("<", position)) >= 0:
        other = next(((begin, end) for begin, end in _OTHERS if source.startswith(begin, start)), None)
        if other is not None:
            position = _after(source, other[1], start, file=file)
            continue
        is_end = source.startswith("/", start + 1)
        name = _NAME.match(source, start + 1 + is_end)
        if name is None:
            raise _wrong(file, line_of(source, start), "a '<' begins no element; write &lt;")
        position = _element_end(source, name.end(), file=file)
        if is_end:
            _close(opened, name[0], line_of(source, start), file=file)
        else:
            _check_name(name[0], line_of(source, start), file=file)
            if name[0] == "mj-style" and _INLINE.search(source, name.end(), position):
                raise _wrong(
                    file,
                    line_of(source, start),
                    "<mj-style inline> would rewrite every mail anew, and is not available",
                    hint="take inline out, and give elements their styles by mj-attributes, mj-class or style",
                )
            has_body = has_body or any(outer == "mj-body" for outer, _ in opened)
            if source[position - 2] != "/" and name[0] not in _VOID:
                opened.append((name[0], line_of(source, start)))
        if len(opened) > DEPTH_MAX:
            raise _wrong(file, opened[-1][1], f"elements are nested more than {DEPTH_MAX} deep")
    if opened:
        raise _wrong(file, opened[-1][1], f"<{opened[-1][0]}> is not closed")
    return has_body


def _close(opened: list[tuple[str, int]], name: str, line: int, *, file: str) -> None:
    """Take the element off that an end tag closes."""
    if name in _VOID:
        return
    if not opened or opened[-1][0] != name:
        inside = f", inside <{opened[-1][0]}> of line {opened[-1][1]}" if opened else ""
        raise _wrong(file, line, f"</{name}> closes nothing here{inside}")
    opened.pop()


def _check_name(name: str, line: int, *, file: str) -> None:
    """Refuse an element of MJML that there is not, and the one that reads files."""
    if name == "mj-include":
        raise _wrong(file, line, "files cannot be included")
    if name.startswith("mj") and name not in ELEMENTS:
        raise _wrong(file, line, f"MJML has no <{name}>")


def _element_end(source: str, position: int, *, file: str) -> int:
    """Return the position after an element's `>`, whatever its attributes hold in quotes."""
    begin = position
    while True:
        found = _UP_TO_A_SIGN.match(source, position)
        position = found.end() if found else position
        sign = source[position : position + 1]
        if sign == ">":
            return position + 1
        if sign in ("", "<"):
            raise _wrong(file, line_of(source, begin), "an element is not closed by '>'")
        end = _after(source, sign, position + 1, file=file)
        if sign == "'" and '"' in source[position:end]:
            raise _wrong(file, line_of(source, position), "an attribute holds a '\"'; write &quot;")
        position = end


def _after(source: str, end: str, position: int, *, file: str) -> int:
    """Return the position after the next occurrence of what must come."""
    found = source.find(end, position)
    if found < 0:
        raise _wrong(file, line_of(source, position), f"{end!r} is missing")
    return found + len(end)


def _wrong(file: str, line: int, what: str, *, hint: str = "correct the template") -> TemplateMistake:
    """Make the error for MJML that cannot be used."""
    return TemplateMistake(what, field=file, line=line, hint=hint)
