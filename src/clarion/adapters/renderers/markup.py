"""MJML to HTML, once, when a notification is published.

The compiler (mrml, by mjml-python) keeps text where it stands, so Liquid can go through it. Four things it does badly,
and they are done here: it stops at the first error, and says only sometimes where that is; it drops elements and
attributes that it does not know without a word; it ends the whole process on deep nesting; and it escapes attributes
as Rust does (a backslash is doubled, an invisible character becomes its number). So the elements are checked in one
pass that knows the lines and goes on after a mistake, and Liquid, backslashes and all that is not ASCII are taken out
and put back, which also lets a comparison hold a `<`.

What may stand where is in `elements`. Reads and writes nothing; fonts and other files are never fetched or included.
"""

import re
from difflib import get_close_matches
from typing import Final

from mjml import mjml2html

from clarion.adapters.renderers.elements import (
    CHILDREN,
    COMMENT_IN,
    ELEMENTS,
    HTML_IN,
    TEXT_IN,
    Wrong,
    wrong_attribute,
    wrong_place,
)
from clarion.adapters.renderers.language import line_of
from clarion.adapters.renderers.limit import HTML_BYTES_MAX
from clarion.adapters.renderers.links import ATTRIBUTE, WRITES
from clarion.adapters.renderers.variables import LIQUID
from clarion.errors import InvalidInput
from clarion.ports.renderer import TemplateMistake

DEPTH_MAX: Final = 50
"""Elements inside each other. A mail has some ten; at a few thousand the compiler's stack overflows."""

# HTML elements that have no end tag; all others, and all of MJML, are closed.
_VOID: Final = frozenset({"area", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"})

_TAKEN_OUT: Final = re.compile(rf"{LIQUID.pattern}|\\+|[^\x00-\x7f]+", re.DOTALL)

_LIQUID: Final = "\0"
"""Stands for Liquid while elements are read, because Liquid may hold what looks like one."""

_NAME: Final = re.compile(r"[A-Za-z][\w:.-]*", re.ASCII)
_UP_TO_A_SIGN: Final = re.compile(r"[^\"'<>]*")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]+")
_COMMENT: Final = ("<!--", "-->")
_OTHERS: Final = (_COMMENT, ("<![CDATA[", "]]>"), ("<!", ">"), ("<?", "?>"))
_WHERE: Final = re.compile(r"at position ([0-9]+)")

_CORRECT: Final = "correct the template"


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
        what = "this is no MJML, or an element stands where it cannot"
        raise TemplateMistake(what, field=file, line=line_of(before, len(before)), hint=_CORRECT) from error
    size = len(html.encode())
    if size > HTML_BYTES_MAX:
        raise InvalidInput(f"it makes {size} bytes of HTML", field=file, hint=f"stay below {HTML_BYTES_MAX}")
    return html


def wrong_elements(source: str, *, file: str) -> list[TemplateMistake]:
    """Go over all elements once, and name what is wrong with them, one after the other."""
    reader = _Reader(source, file=file)
    try:
        reader.read()
    except TemplateMistake as error:  # where nobody can tell how it goes on
        reader.mistakes.append(error)
        return reader.mistakes
    if "<mjml" in source and not reader.has_body and not reader.mistakes:
        reader.wrong(0, "there is no <mj-body> with something in it, so the mail would be empty")
    return reader.mistakes


class _Reader:
    """One pass over the elements of a mail, whose Liquid is looked at as text of no meaning."""

    def __init__(self, source: str, *, file: str) -> None:
        self.mistakes: list[TemplateMistake] = []
        self.has_body = False
        self._written = source
        self._source = LIQUID.sub(lambda found: _LIQUID * len(found[0]), source)
        self._file = file
        self._opened: list[tuple[str, int]] = []
        self._root: str | None = None

    def read(self) -> None:
        """Read all of it."""
        source, position = self._source, 0
        for found in _CONTROL.finditer(self._written):
            self.wrong(found.start(), f"{found[0]!r} cannot be read here", hint="take it out")
        while (start := source.find("<", position)) >= 0:
            self._text(position, start)
            other = next((one for one in _OTHERS if source.startswith(one[0], start)), None)
            if other is not None:
                position = self._after(other[1], start)
                self._other(start, position, is_comment=other is _COMMENT)
                continue
            is_end = source.startswith("/", start + 1)
            name = _NAME.match(source, start + 1 + is_end)
            if name is None:
                self.wrong(start, "a '<' begins no element", hint="write &lt;")
                position = start + 1
                continue
            end, position = self._element_end(start, name.end())
            if is_end:
                self._close(name[0], start)
            else:
                self._open(name[0], start, attributes=(name.end(), end))
            if len(self._opened) > DEPTH_MAX:
                raise self._mistake(self._opened[-1][1], f"elements are nested more than {DEPTH_MAX} deep")
        self._text(position, len(source))
        for name_of, start in self._opened:
            self._unclosed(name_of, start)

    def wrong(self, position: int, what: str, *, hint: str = _CORRECT) -> None:
        """Note a mistake."""
        self.mistakes.append(self._mistake(position, what, hint=hint))

    def _mistake(self, position: int, what: str, *, hint: str = _CORRECT) -> TemplateMistake:
        line = line_of(self._written, position)
        return TemplateMistake(what, field=self._file, line=line, position=position, hint=hint)

    def _note(self, position: int, wrong: Wrong | None) -> None:
        if wrong is not None:
            self.wrong(position, wrong.what, hint=wrong.hint)

    def _unclosed(self, name: str, position: int, *, before: str = "") -> None:
        what = f"<{name}> is not closed{before and f' before </{before}>'}"
        self.wrong(position, what, hint=f"write </{name}> behind what it holds, or /> at its end if it holds nothing")

    def _text(self, position: int, end: int) -> None:
        """Refuse text where the compiler can read none."""
        text = self._source[position:end]
        if (closing := text.find("]]>")) >= 0:
            self.wrong(position + closing, "']]>' cannot be read here", hint="write ]]&gt;")
        blank = len(text) - len(text.lstrip())
        if blank == len(text):
            return
        outer = self._opened[-1][0] if self._opened else None
        if outer is None:
            if self._root in (None, "mjml"):
                self.wrong(position + blank, "this stands outside of <mjml>", hint="put it into the <mj-body>")
        elif self._is_empty(outer) or (outer in ELEMENTS and outer not in TEXT_IN):
            hint = "move it into one of the elements inside" if outer in CHILDREN else f"write <{outer} … />"
            self.wrong(position + blank, f"neither text nor Liquid can stand right inside <{outer}>", hint=hint)

    def _other(self, start: int, end: int, *, is_comment: bool) -> None:
        """Refuse what is no element, but for comments where the compiler can read them."""
        outer = self._opened[-1][0] if self._opened else None
        if not is_comment:
            self.wrong(start, f"{self._source[start:end][:40]!r} cannot be read here", hint="take it out")
        elif outer is not None and (self._is_empty(outer) or (outer in ELEMENTS and outer not in COMMENT_IN)):
            self.wrong(start, f"no comment can stand right inside <{outer}>", hint="put it before the element")

    def _is_empty(self, outer: str) -> bool:
        """Tell whether the innermost element is one that only says which attributes others have."""
        return outer != "mj-attributes" and any(name == "mj-attributes" for name, _ in self._opened)

    def _open(self, name: str, start: int, *, attributes: tuple[int, int]) -> None:
        """Begin an element; refuse what MJML does not have, or not here, and the one that reads files."""
        is_mjml = name in ELEMENTS
        if name == "mj-include":
            self.wrong(start, "files cannot be included", hint="write {% partial … %}")
        elif name.lower().startswith("mj") and not is_mjml:
            self.wrong(start, f"MJML has no <{name}>", hint=self._instead(name))
        elif self._opened and self._is_empty(self._opened[-1][0]):
            self.wrong(start, f"<{name}> stands in an element of <mj-attributes>, which holds nothing", hint="move it")
        elif is_mjml:
            self._place(name, start)
        elif (outer := self._opened[-1][0] if self._opened else "mjml") in ELEMENTS and outer not in HTML_IN:
            self.wrong(
                start,
                f"<{name}> is HTML, which cannot stand inside <{outer}>",
                hint="put it into <mj-text> or <mj-raw>",
            )
        is_closed = self._source[attributes[1] - 1] == "/"
        self._attributes(name, attributes[0], attributes[1] - is_closed, is_mjml=is_mjml)
        self.has_body = self.has_body or any(outer == "mj-body" for outer, _ in self._opened)
        if not is_closed and name not in _VOID:
            self._opened.append((name, start))

    def _place(self, name: str, start: int) -> None:
        """Refuse an element of MJML where it cannot stand; inside of one that there is not, anything may."""
        outer = next((one for one, _ in reversed(self._opened) if one.startswith("mj")), None)
        if outer is None and self._root == "mjml":
            self.wrong(start, f"<{name}> stands behind the end of <mjml>", hint="put it into the <mj-body>")
        elif (outer is None and self._root is None) or outer in ELEMENTS:  # without <mjml>, the first one tells it
            self._note(start, wrong_place(name, outer))
        self._root = self._root or name

    def _instead(self, name: str) -> str:
        near = get_close_matches(name.lower(), sorted(ELEMENTS), n=1)
        return f"write <{near[0]}>" if near else "docs/reference/notifications.md says what there is"

    def _attributes(self, element: str, start: int, end: int, *, is_mjml: bool) -> None:
        """Look at what stands between an element's name and its end."""
        source, position = self._source, start
        names: set[str] = set()
        for found in ATTRIBUTE.finditer(source, start, end):
            self._between(source[position : found.start()], position, is_first=position == start or _LIQUID in found[1])
            position, name = found.end(), found[1]
            if _LIQUID in found[1] + (found[4] or ""):
                if is_mjml and not WRITES.match(self._written, found.start()):  # `links` refuses what writes
                    hint = "put it between the quotes of an attribute, or around the whole element"
                    self.wrong(found.start(), f"Liquid between the attributes of <{element}> would be lost", hint=hint)
                continue
            if found[4] is not None:
                self.wrong(found.start(), f"the value of {name} is not in quotes", hint=f'write {name}="{found[4]}"')
            elif name in names:
                self.wrong(found.start(), f"{name} is given twice", hint="keep one of the two")
            elif element == "mj-style" and name.lower() == "inline":
                hint = "take inline out, and give elements their styles by mj-attributes, mj-class or style"
                what = "<mj-style inline> would rewrite every mail anew, and is not available"
                self.wrong(found.start(), what, hint=hint)
            elif is_mjml:
                value = found[2] or found[3] or ""
                self._note(found.start(), wrong_attribute(element, name, None if _LIQUID in value else value))
            elif _NAME.fullmatch(name) is None:
                self.wrong(found.start(), f"no attribute can be called {name[:40]!r}", hint="correct or remove it")
            names.add(name)
        self._between(source[position:end], position, is_first=True)
        if element == "mj-class" and "name" not in names:
            self.wrong(start, "<mj-class> has no name", hint='write <mj-class name="big" … />')

    def _between(self, text: str, position: int, *, is_first: bool) -> None:
        """Refuse what stands between attributes and is none."""
        if text.strip():
            self.wrong(position, f"this cannot be read as an attribute, near {text.strip()[:40]!r}")
        elif not text and not is_first:
            self.wrong(position, "two attributes have no blank between them", hint="write one")

    def _close(self, name: str, start: int) -> None:
        """Take the element off that an end tag closes, and what was left open inside it."""
        if name in _VOID:
            return
        if all(outer != name for outer, _ in self._opened):
            inside = f", inside <{self._opened[-1][0]}>" if self._opened else ""
            self.wrong(start, f"</{name}> closes nothing here{inside}", hint="correct its name, or take it out")
            if self._is_misspelled(start):
                self._opened.pop()
            return
        while (opened := self._opened.pop())[0] != name:
            self._unclosed(*opened, before=name)

    def _is_misspelled(self, start: int) -> bool:
        """Tell whether an end tag was meant for the innermost element, which is not closed before the one around it."""
        ends = [self._source.find(f"</{name}", start + 1) for name, _ in self._opened[-1:-3:-1]]
        return bool(ends) and (ends[0] < 0 or (len(ends) > 1 and 0 <= ends[1] < ends[0]))

    def _element_end(self, start: int, position: int) -> tuple[int, int]:
        """Return where an element's attributes end, whatever they hold in quotes, and where its `>` does."""
        source, begin = self._source, position
        while True:
            found = _UP_TO_A_SIGN.match(source, position)
            position = found.end() if found else position
            sign = source[position : position + 1]
            if sign == ">":
                return position, position + 1
            if sign in ("", "<"):
                self.wrong(start, "an element is not closed by '>'", hint="write it")
                return position, position
            end = source.find(sign, position + 1)
            if end < 0 or "<" in source[position:end]:
                what = f"a {sign} is not closed, or what it begins holds a '<'"
                self.wrong(position, what, hint=f"write {sign} at its end, and &lt; inside it")
                closing = source.find(">", position)
                before = max(source.rfind(blank, start, position) for blank in " \t\n")
                return max(before, begin), closing + 1 if closing >= 0 else len(source)
            if sign == "'" and '"' in source[position:end]:
                self.wrong(position, "an attribute holds a '\"'", hint="write &quot;")
            position = end + 1

    def _after(self, end: str, position: int) -> int:
        """Return the position after the next occurrence of what must come."""
        found = self._source.find(end, position)
        if found < 0:
            raise self._mistake(position, f"{end!r} is missing", hint="write it")
        return found + len(end)
