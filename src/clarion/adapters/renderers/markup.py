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
    """Turn MJML with Liquid in it into HTML with the same Liquid, or raise InvalidInput that names file and line.

    `wrong_elements` has found nothing wrong with it.
    """
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
    size = len(html.encode())
    if size > HTML_BYTES_MAX:
        raise InvalidInput(f"it makes {size} bytes of HTML", field=file, hint=f"stay below {HTML_BYTES_MAX}")
    return html


def wrong_elements(source: str, *, file: str) -> list[TemplateMistake]:
    """Go over all elements once, and name what is wrong with them: each known, each closed, none too deep."""
    reader = _Reader(LIQUID.sub(lambda found: re.sub(r"\S", "x", found[0]), source), file=file)
    try:
        reader.read()
    except TemplateMistake as error:  # where nobody can tell how it goes on
        reader.mistakes.append(error)
        return reader.mistakes
    if "<mjml" in source and not reader.has_body and not reader.mistakes:
        reader.wrong(1, "there is no <mj-body> with something in it, so the mail would be empty")
    return reader.mistakes


class _Reader:
    """One pass over the elements of a mail, whose Liquid was made plain text."""

    def __init__(self, source: str, *, file: str) -> None:
        self.mistakes: list[TemplateMistake] = []
        self.has_body = False
        self._source = source
        self._file = file
        self._opened: list[tuple[str, int]] = []

    def read(self) -> None:
        """Read all of it."""
        source, position = self._source, 0
        while (start := source.find("<", position)) >= 0:
            other = next(((begin, end) for begin, end in _OTHERS if source.startswith(begin, start)), None)
            if other is not None:
                position = _after(source, other[1], start, file=self._file)
                continue
            is_end = source.startswith("/", start + 1)
            name, line = _NAME.match(source, start + 1 + is_end), line_of(source, start)
            if name is None:
                self.wrong(line, "a '<' begins no element; write &lt;")
                position = start + 1
                continue
            position = self._element_end(name.end())
            if is_end:
                self._close(name[0], line)
            else:
                self._open(name[0], line, attributes=(name.end(), position))
            if len(self._opened) > DEPTH_MAX:
                raise _wrong(self._file, self._opened[-1][1], f"elements are nested more than {DEPTH_MAX} deep")
        for name_of, line in self._opened[-1:]:
            self.wrong(line, f"<{name_of}> is not closed")

    def wrong(self, line: int, what: str, *, hint: str = "correct the template") -> None:
        """Note a mistake."""
        self.mistakes.append(_wrong(self._file, line, what, hint=hint))

    def _open(self, name: str, line: int, *, attributes: tuple[int, int]) -> None:
        """Begin an element; refuse one of MJML that there is not, and the one that reads files."""
        if name == "mj-include":
            self.wrong(line, "files cannot be included")
        elif name.startswith("mj") and name not in ELEMENTS:
            self.wrong(line, f"MJML has no <{name}>")
        elif name == "mj-style" and _INLINE.search(self._source, *attributes):
            self.wrong(
                line,
                "<mj-style inline> would rewrite every mail anew, and is not available",
                hint="take inline out, and give elements their styles by mj-attributes, mj-class or style",
            )
        self.has_body = self.has_body or any(outer == "mj-body" for outer, _ in self._opened)
        if self._source[attributes[1] - 2] != "/" and name not in _VOID:
            self._opened.append((name, line))

    def _close(self, name: str, line: int) -> None:
        """Take the element off that an end tag closes; one that closes nothing is taken for the innermost one's."""
        if name in _VOID:
            return
        if not self._opened or self._opened[-1][0] != name:
            inside = f", inside <{self._opened[-1][0]}> of line {self._opened[-1][1]}" if self._opened else ""
            self.wrong(line, f"</{name}> closes nothing here{inside}")
        while self._opened:
            closed, _ = self._opened.pop()
            if closed == name or all(outer != name for outer, _ in self._opened):
                break

    def _element_end(self, position: int) -> int:
        """Return the position after an element's `>`, whatever its attributes hold in quotes."""
        source, begin = self._source, position
        while True:
            found = _UP_TO_A_SIGN.match(source, position)
            position = found.end() if found else position
            sign = source[position : position + 1]
            if sign == ">":
                return position + 1
            if sign in ("", "<"):
                raise _wrong(self._file, line_of(source, begin), "an element is not closed by '>'")
            end = _after(source, sign, position + 1, file=self._file)
            if sign == "'" and '"' in source[position:end]:
                self.wrong(line_of(source, position), "an attribute holds a '\"'; write &quot;")
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
