"""Putting layouts, partials and texts into a template, once, when it is published.

    {% content %}              in a layout: where the template that has this layout stands
    {% partial "signature" %}  the file `layouts/_signature.mjml.liquid`, or `.text.liquid` outside of MJML
    {% t greeting %}           the text of that name in the language at hand

What comes out is plain Liquid with nothing left to look up, and a map from each of its places to the file and line
that its author knows. It is bounded: so many insertions, so many inside each other, so many characters in all.
Pure: what the pieces are is an argument, and the Liquid itself is the renderer's.
"""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from html import escape
from typing import Final, NamedTuple

import msgspec

from clarion.errors import InvalidInput

DEPTH_MAX: Final = 5
"""Partials inside each other. A mail needs two; a partial that holds itself never ends."""

INSERTED_MAX: Final = 500
"""Insertions into one template."""

CHARS_MAX: Final = 64 * 1024
"""An expanded template: as much as a template may have that its author wrote out."""

NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}", re.ASCII)
"""A text or a partial."""

_TAG: Final = re.compile(r"\{%(?P<dash>-?)\s{0,20}(?P<tag>t|partial|content)(?!\w)(?P<given>[^%{}]{0,200})%\}")
_LIQUID: Final = re.compile(r"\{\{[^{}]*\}\}")


class Text(NamedTuple):
    """A text of a language, and where it stands."""

    value: str
    file: str
    line: int


class Place(NamedTuple):
    """Where something stands in what its author wrote."""

    file: str
    line: int


class Expanded(msgspec.Struct, frozen=True):
    """A template with everything put in, and where each piece of it comes from."""

    file: str
    text: str
    pieces: tuple[tuple[int, Place], ...]
    """Where in the text each piece begins, and the place of its beginning."""
    is_whole: bool
    """Whether nothing was left out for a mistake."""

    def place_of(self, position: int) -> Place:
        """Say where the author wrote what stands at a position."""
        start, place = self.pieces[max(bisect_right(self.pieces, position, key=lambda piece: piece[0]) - 1, 0)]
        return Place(place.file, place.line + self.text.count("\n", start, max(position, start)))

    def place_of_line(self, line: int) -> Place:
        """Say where the author wrote what a line begins with."""
        position = 0
        for _ in range(line - 1):
            position = self.text.find("\n", position) + 1
        return self.place_of(position)


class Pieces(msgspec.Struct, frozen=True, kw_only=True):
    """What can be put into the templates of one type in one language."""

    layouts: Mapping[str, str]
    """The files of layouts and partials, by their names."""
    texts: Mapping[str, Text]
    """The type's own and those of all types."""
    missing: dict[str, Place]
    """Texts that are read and are not there, each with the first place that reads it."""


def expand(
    template: str, *, file: str, is_mjml: bool, layout: str | None, pieces: Pieces, mistakes: list[InvalidInput]
) -> Expanded:
    """Put everything into a template; what is wrong with it is added to `mistakes`, and left out.

    Texts that are missing are added to `pieces.missing`, so that each is told once, wherever it is read.
    """
    expansion = _Expansion(is_mjml=is_mjml, pieces=pieces, mistakes=mistakes)
    try:
        if layout is None:
            expansion.put(template, file=file, inside=(), content=None)
        else:
            content = (template, file)
            expansion.put(pieces.layouts[layout], file=f"layouts/{layout}", inside=(), content=content)
    except _TooMuch:
        expansion.is_whole = False
        mistakes.append(
            InvalidInput(
                f"with its layout, partials and texts it has over {CHARS_MAX} characters or {INSERTED_MAX} insertions",
                field=file,
                hint="make it smaller; images belong on a server",
            )
        )
    return Expanded(
        file,
        "".join(expansion.written),
        tuple(expansion.begins) or ((0, Place(file, 1)),),
        is_whole=expansion.is_whole,
    )


def layout_file(layout: str, *, is_mjml: bool) -> str:
    """Name the file of a layout, or of a partial, whose name begins with `_`."""
    return f"{layout}.{'mjml' if is_mjml else 'text'}.liquid"


class _TooMuch(Exception):
    """The expansion has no end, or too late a one."""


class _Expansion:
    """One template on its way."""

    def __init__(self, *, is_mjml: bool, pieces: Pieces, mistakes: list[InvalidInput]) -> None:
        self._is_mjml = is_mjml
        self._pieces = pieces
        self._mistakes = mistakes
        self._size = 0
        self._inserted = 0
        self.is_whole = True
        self.written: list[str] = []
        self.begins: list[tuple[int, Place]] = []

    def put(self, source: str, *, file: str, inside: Sequence[str], content: tuple[str, str] | None) -> None:
        """Write a file with all that is put into it; `inside` names the partials that it stands in."""
        position, line, contents = 0, 1, 0
        for tag in _TAG.finditer(source):
            self._write(source[position : tag.start()], Place(file, line))
            line += source.count("\n", position, tag.start())
            position = tag.start()
            place = Place(file, line)
            contents += tag["tag"] == "content"
            self._insert(tag, place, inside=inside, content=content if contents <= 1 else None)
            line += tag[0].count("\n")
            position = tag.end()
        self._write(source[position:], Place(file, line))
        if content is not None and contents != 1:
            self._wrong(
                Place(file, 1),
                f"a layout has {{% content %}} once, and this one has it {contents} times",
                "write it where the template of a notification stands",
            )

    def _insert(
        self, tag: re.Match[str], place: Place, *, inside: Sequence[str], content: tuple[str, str] | None
    ) -> None:
        self._inserted += 1
        if self._inserted > INSERTED_MAX:
            raise _TooMuch
        given = tag["given"].strip()
        name = given[1:-1] if given[:1] in ("'", '"') and given[:1] == given[-1:] else given
        if tag["dash"] or given.endswith("-"):
            self._wrong(place, f"{tag[0]!r} has a '-'", f"write {{% {tag['tag']} … %}} without it")
        elif tag["tag"] == "content":
            self._put_content(place, given, inside=inside, content=content)
        elif not NAME.fullmatch(name):
            self._wrong(place, f"{tag[0]!r} has no name", f"write {{% {tag['tag']} greeting %}}, with a name of yours")
        elif tag["tag"] == "t":
            self._put_text(place, name)
        else:
            self._put_partial(place, name, inside=inside)

    def _put_content(self, place: Place, given: str, *, inside: Sequence[str], content: tuple[str, str] | None) -> None:
        if given:
            self._wrong(place, "{% content %} takes nothing", "write it without more words")
        elif content is not None:
            self.put(content[0].removesuffix("\n"), file=content[1], inside=inside, content=None)
        elif not place.file.startswith("layouts/") or inside:
            self._wrong(place, "{% content %} stands in a layout, and this is none", "take it out")

    def _put_text(self, place: Place, name: str) -> None:
        text = self._pieces.texts.get(name)
        if text is None:
            self._pieces.missing.setdefault(name, place)
            self.is_whole = False
        else:
            self._write(_escaped(text.value) if self._is_mjml else text.value, Place(text.file, text.line))

    def _put_partial(self, place: Place, name: str, *, inside: Sequence[str]) -> None:
        file = layout_file(f"_{name}", is_mjml=self._is_mjml)
        source = self._pieces.layouts.get(file)
        if source is None:
            self._wrong(place, f"there is no partial {name!r}", f"add the file layouts/{file}")
        elif name in inside or len(inside) >= DEPTH_MAX:
            path = " in ".join(reversed([*inside, name]))
            what = f"partials stand inside each other: {path}"
            self._wrong(place, what, f"nest at most {DEPTH_MAX}, and none in itself")
        else:
            self.put(source.removesuffix("\n"), file=f"layouts/{file}", inside=(*inside, name), content=None)

    def _write(self, text: str, place: Place) -> None:
        if not text:
            return
        self.begins.append((self._size, place))
        self.written.append(text)
        self._size += len(text)
        if self._size > CHARS_MAX:
            raise _TooMuch

    def _wrong(self, place: Place, what: str, hint: str) -> None:
        self.is_whole = False
        self._mistakes.append(InvalidInput(f"line {place.line}: {what}", field=place.file, hint=hint))


def _escaped(text: str) -> str:
    """Write a text as HTML; what it reads is escaped by the merge."""
    written, position = [], 0
    for liquid in _LIQUID.finditer(text):
        written += [_as_html(text[position : liquid.start()]), liquid[0]]
        position = liquid.end()
    return "".join([*written, _as_html(text[position:])])


def _as_html(text: str) -> str:
    return escape(text).replace("&#x27;", "&#39;")  # as the merge writes it
