"""The elements of MJML: what may stand inside each, which attributes it has, and what these may hold.

The compiler takes nearly everything without a word: of an attribute that it does not know nothing arrives, and a text
outside of its column is shown where it should not be. So what a mail may have is written down here, as the reference
compiler has it (`tests/unit/test_mjml_reference.py` asks it about each line). Pure; `markup` reads the mails.
"""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final, NamedTuple


class Wrong(NamedTuple):
    """What is wrong, and what to do."""

    what: str
    hint: str


class Kind(NamedTuple):
    """What an attribute may hold."""

    pattern: re.Pattern[str]
    advice: str


def _words(*words: str) -> Kind:
    known = [word for word in words if word]
    return Kind(re.compile("|".join(map(re.escape, words))), f"choose from {', '.join(known)}")


def _sizes(*units: str, most: int = 1, sign: str = "", or_else: str = "") -> Kind:
    """Take so many numbers, each with one of the units; a 0 needs none."""
    unit = "|".join(map(re.escape, units))
    named = " or ".join(one for one in units if one)
    number = "a number" if most == 1 else f"up to {most} numbers"
    example = f"12{units[0]}" if most == 1 else f"10{units[0]} 25{units[0]}"
    either = f", or {or_else}" if or_else else ""
    return Kind(
        re.compile(rf"(?:(?:[{sign}\d.,]+(?:{unit})|0{f'|{or_else}' if or_else else ''}) ?){{1,{most}}}", re.ASCII),
        f"write {number} with {named}, such as {example}{either}",
    )


_COLOURS: Final = (
    "aliceblue|antiquewhite|aqua|aquamarine|azure|beige|bisque|black|blanchedalmond|blue|blueviolet|"
    "brown|burlywood|cadetblue|chartreuse|chocolate|coral|cornflowerblue|cornsilk|crimson|cyan|"
    "darkblue|darkcyan|darkgoldenrod|darkgray|darkgreen|darkgrey|darkkhaki|darkmagenta|darkolivegreen|"
    "darkorange|darkorchid|darkred|darksalmon|darkseagreen|darkslateblue|darkslategray|darkslategrey|"
    "darkturquoise|darkviolet|deeppink|deepskyblue|dimgray|dimgrey|dodgerblue|firebrick|floralwhite|"
    "forestgreen|fuchsia|gainsboro|ghostwhite|gold|goldenrod|gray|green|greenyellow|grey|honeydew|"
    "hotpink|indianred|indigo|inherit|ivory|khaki|lavender|lavenderblush|lawngreen|lemonchiffon|"
    "lightblue|lightcoral|lightcyan|lightgoldenrodyellow|lightgray|lightgreen|lightgrey|lightpink|"
    "lightsalmon|lightseagreen|lightskyblue|lightslategray|lightslategrey|lightsteelblue|lightyellow|lime|"
    "limegreen|linen|magenta|maroon|mediumaquamarine|mediumblue|mediumorchid|mediumpurple|mediumseagreen|"
    "mediumslateblue|mediumspringgreen|mediumturquoise|mediumvioletred|midnightblue|mintcream|mistyrose|"
    "moccasin|navajowhite|navy|oldlace|olive|olivedrab|orange|orangered|orchid|palegoldenrod|palegreen|"
    "paleturquoise|palevioletred|papayawhip|peachpuff|peru|pink|plum|powderblue|purple|rebeccapurple|"
    "red|rosybrown|royalblue|saddlebrown|salmon|sandybrown|seagreen|seashell|sienna|silver|skyblue|"
    "slateblue|slategray|slategrey|snow|springgreen|steelblue|tan|teal|thistle|tomato|transparent|"
    "turquoise|violet|wheat|white|whitesmoke|yellow|yellowgreen"
)

_COLOUR: Final = Kind(
    re.compile(
        r"rgba\(\d{1,3},\s?\d{1,3},\s?\d{1,3},\s?\d(\.\d{1,3})?\)|rgb\(\d{1,3},\s?\d{1,3},\s?\d{1,3}\)"
        rf"|#([0-9a-f]{{3}}){{1,2}}|{_COLOURS}",
        re.ASCII | re.IGNORECASE,
    ),
    "write #1f6b52, rgb(31, 107, 82) or the name of a colour",
)
_TEXT: Final = Kind(re.compile(r".*", re.DOTALL), "write a text")
_WHOLE: Final = Kind(re.compile(r"\d+", re.ASCII), "write a whole number")
_PX: Final = _sizes("px")
_SIZE: Final = _sizes("px", "%")
_SIZES: Final = _sizes("px", "%", most=4)
_LINE: Final = _sizes("px", "%", "")
_SPACING: Final = _sizes("px", "em", sign="-")


def _takes(
    *shared: Mapping[str, Kind],
    text: str = "",
    colour: str = "",
    px: str = "",
    size: str = "",
    sizes: str = "",
    **others: Kind,
) -> dict[str, Kind]:
    """Make the attributes of an element; the names of `others` have _ for -."""
    named = ((text, _TEXT), (colour, _COLOUR), (px, _PX), (size, _SIZE), (sizes, _SIZES))
    found = {name: kind for one in shared for name, kind in one.items()}
    found |= {name: kind for names, kind in named for name in names.split()}
    return found | {name.replace("_", "-"): kind for name, kind in others.items()}


_PADDING: Final = _takes(sizes="padding", size="padding-bottom padding-left padding-right padding-top")
_BORDERS: Final = _takes(text="border border-bottom border-left border-right border-top")
_FONT: Final = _takes(text="font-family font-weight", px="font-size")
_LINK: Final = _takes(text="href rel target")
_ICONS: Final = _takes(
    text="icon-wrapped-url icon-wrapped-alt icon-unwrapped-url icon-unwrapped-alt",
    size="icon-width icon-height",
    icon_align=_words("top", "middle", "bottom"),
    icon_position=_words("left", "right"),
)
_ALIGN: Final = _words("left", "center", "right")
_VERTICAL: Final = _words("top", "middle", "bottom")
_DIRECTION: Final = _words("ltr", "rtl")
_PART: Final = _takes(
    _PADDING,
    _BORDERS,
    colour="background-color",
    text="background-url background-size background-position background-position-x background-position-y border-radius",
    sizes="text-padding",
    background_repeat=_words("repeat", "no-repeat"),
    direction=_DIRECTION,
    full_width=_words("full-width", "false", ""),
    text_align=_ALIGN,
)
_EVERYWHERE: Final = frozenset({"css-class", "mj-class"})

ATTRIBUTES: Final[Mapping[str, Mapping[str, Kind]]] = {
    "mj-head": {},
    "mj-attributes": {},
    "mj-preview": {},
    "mj-title": {},
    "mj-style": _takes(text="inline"),
    "mj-font": _takes(text="href name"),
    "mj-breakpoint": _takes(px="width"),
    "mj-body": _takes(px="width", colour="background-color"),
    "mj-raw": _takes(position=_words("file-start")),
    "mj-section": _PART,
    "mj-wrapper": _takes(_PART, px="gap"),
    "mj-group": _takes(size="width", colour="background-color", direction=_DIRECTION, vertical_align=_VERTICAL),
    "mj-column": _takes(
        _PADDING,
        _BORDERS,
        colour="background-color inner-background-color",
        size="width",
        sizes="border-radius inner-border-radius",
        text="inner-border inner-border-bottom inner-border-left inner-border-right inner-border-top",
        direction=_DIRECTION,
        vertical_align=_VERTICAL,
    ),
    "mj-hero": _takes(
        _PADDING,
        colour="background-color container-background-color inner-background-color",
        size="background-height background-width height inner-padding-bottom inner-padding-left inner-padding-right"
        " inner-padding-top",
        sizes="inner-padding",
        text="background-position background-url border-radius mode",
        vertical_align=_VERTICAL,
    ),
    "mj-text": _takes(
        _PADDING,
        _FONT,
        colour="background-color color container-background-color",
        size="height",
        text="font-style text-decoration text-transform",
        line_height=_LINE,
        letter_spacing=_SPACING,
        align=_words("left", "center", "right", "justify"),
        vertical_align=_VERTICAL,
    ),
    "mj-button": _takes(
        _PADDING,
        _BORDERS,
        _FONT,
        _LINK,
        colour="background-color color container-background-color",
        size="height width",
        sizes="inner-padding",
        text="border-radius font-style name text-decoration text-transform title",
        line_height=_LINE,
        letter_spacing=_SPACING,
        align=_ALIGN,
        text_align=_ALIGN,
        vertical_align=_VERTICAL,
    ),
    "mj-image": _takes(
        _PADDING,
        _BORDERS,
        _LINK,
        colour="container-background-color",
        px="font-size width",
        size="max-height",
        sizes="border-radius",
        text="alt name sizes src srcset title usemap",
        align=_ALIGN,
        fluid_on_mobile=_words("true", "false"),
        height=_sizes("px", or_else="auto"),
    ),
    "mj-divider": _takes(
        _PADDING,
        colour="border-color container-background-color",
        px="border-width",
        size="width",
        text="border-style",
        align=_ALIGN,
    ),
    "mj-spacer": _takes(_PADDING, _BORDERS, colour="container-background-color", size="height"),
    "mj-table": _takes(
        _PADDING,
        _FONT,
        colour="color container-background-color",
        text="border",
        cellpadding=_WHOLE,
        cellspacing=_WHOLE,
        line_height=_LINE,
        align=_ALIGN,
        role=_words("none", "presentation"),
        table_layout=_words("auto", "fixed", "initial", "inherit"),
        vertical_align=_VERTICAL,
        width=_sizes("px", "%", or_else="auto"),
    ),
    "mj-accordion": _takes(_PADDING, _ICONS, colour="container-background-color", text="border font-family"),
    "mj-accordion-element": _takes(_ICONS, colour="background-color", text="border font-family"),
    "mj-accordion-title": _takes(_PADDING, _FONT, colour="background-color color"),
    "mj-accordion-text": _takes(
        _PADDING, _FONT, colour="background-color color", line_height=_LINE, letter_spacing=_SPACING
    ),
    "mj-carousel": _takes(
        _PADDING,
        colour="container-background-color tb-hover-border-color tb-selected-border-color",
        size="icon-width tb-border-radius tb-width",
        sizes="border-radius",
        text="left-icon right-icon tb-border",
        align=_ALIGN,
        thumbnails=_words("visible", "hidden", "supported"),
    ),
    "mj-carousel-image": _takes(
        _LINK, sizes="border-radius tb-border-radius", text="alt src tb-border thumbnails-src title"
    ),
    "mj-navbar": _takes(
        _PADDING,
        colour="ico-color",
        size="ico-font-size ico-padding-bottom ico-padding-left ico-padding-right ico-padding-top",
        sizes="ico-padding",
        text="base-url hamburger ico-close ico-font-family ico-open ico-text-decoration ico-text-transform",
        ico_line_height=_LINE,
        align=_ALIGN,
        ico_align=_ALIGN,
    ),
    "mj-navbar-link": _takes(
        _PADDING,
        _FONT,
        _LINK,
        colour="color",
        text="font-style name text-decoration text-transform",
        line_height=_LINE,
        letter_spacing=_SPACING,
    ),
    "mj-social": _takes(
        _PADDING,
        _FONT,
        colour="color container-background-color",
        size="border-radius icon-height icon-size",
        sizes="icon-padding inner-padding text-padding",
        text="font-style text-decoration",
        line_height=_LINE,
        align=_ALIGN,
        mode=_words("horizontal", "vertical"),
        table_layout=_words("auto", "fixed"),
        vertical_align=_VERTICAL,
    ),
    "mj-social-element": _takes(
        _PADDING,
        _FONT,
        _LINK,
        colour="background-color color",
        px="border-radius",
        size="icon-height icon-size",
        sizes="icon-padding text-padding",
        text="alt font-style name sizes src srcset text-decoration title",
        line_height=_LINE,
        align=_ALIGN,
        icon_position=_words("left", "right"),
        vertical_align=_VERTICAL,
    ),
}
"""Of each element; `mjml`, `mj-all` and `mj-class` take any."""

_BLOCKS: Final = (
    *("mj-accordion", "mj-button", "mj-carousel", "mj-divider", "mj-image", "mj-navbar", "mj-raw", "mj-social"),
    *("mj-spacer", "mj-table", "mj-text"),
)

CHILDREN: Final[Mapping[str, tuple[str, ...]]] = {
    "mjml": ("mj-head", "mj-body"),
    "mj-head": ("mj-attributes", "mj-breakpoint", "mj-font", "mj-preview", "mj-raw", "mj-style", "mj-title"),
    "mj-attributes": (*ATTRIBUTES, "mj-all", "mj-class"),
    "mj-body": ("mj-hero", "mj-raw", "mj-section", "mj-wrapper"),
    "mj-wrapper": ("mj-hero", "mj-raw", "mj-section"),
    "mj-section": ("mj-column", "mj-group", "mj-raw"),
    "mj-group": ("mj-column", "mj-raw"),
    "mj-column": _BLOCKS,
    "mj-hero": _BLOCKS,
    "mj-accordion": ("mj-accordion-element",),
    "mj-accordion-element": ("mj-accordion-title", "mj-accordion-text"),
    "mj-carousel": ("mj-carousel-image",),
    "mj-navbar": ("mj-navbar-link",),
    "mj-social": ("mj-social-element",),
}
"""The elements of MJML that may stand right inside each; in all others there are none."""

ELEMENTS: Final = frozenset({"mjml", "mj-all", "mj-class", *ATTRIBUTES})

HTML_IN: Final = frozenset(
    {"mj-accordion-text", "mj-button", "mj-navbar-link", "mj-raw", "mj-social-element", "mj-table", "mj-text"}
)
"""The elements that hold HTML."""

TEXT_IN: Final = HTML_IN | {
    *("mj-accordion-title", "mj-preview", "mj-style", "mj-title"),
    *("mj-body", "mj-column", "mj-group", "mj-hero", "mj-section", "mj-wrapper"),
}
"""The elements right inside of which text may stand; in those of the second line it is Liquid around elements."""

COMMENT_IN: Final = (TEXT_IN - {"mj-accordion-title", "mj-style", "mj-title"}) | {
    *("mjml", "mj-head", "mj-accordion", "mj-navbar", "mj-social"),
}
"""The elements right inside of which the compiler can read a comment."""


def wrong_place(name: str, outer: str | None) -> Wrong | None:
    """Say what is wrong with where an element of MJML stands: right inside `outer`, or in nothing."""
    if outer is None:
        if name == "mjml":
            return None
        return Wrong(f"<{name}> stands outside of <mjml>", "write <mjml><mj-body> around it")
    if name == "mjml":
        hint = "keep what stands inside its <mj-body>, or take layout out of the definition"
        return Wrong("there is an <mjml> around this <mjml> already", hint)
    if name in CHILDREN.get(outer, ()):
        return None
    places = [f"<{one}>" for one, inner in CHILDREN.items() if name in inner and one != "mj-attributes"]
    places = places or [f"<{one}>" for one, inner in CHILDREN.items() if name in inner]
    hint = f"put it right inside {' or '.join(places)}" if places else "take it out"
    return Wrong(f"<{name}> cannot stand inside <{outer}>", hint)


def wrong_attribute(element: str, name: str, value: str | None) -> Wrong | None:
    """Say what is wrong with an attribute of an element of MJML; a value that is not known yet is None."""
    kinds = ATTRIBUTES.get(element)
    if kinds is None or name in _EVERYWHERE:
        return None
    if name not in kinds:
        known = sorted({*kinds, *_EVERYWHERE})
        near = get_close_matches(name, known, n=1)
        hint = f"write {near[0]}, or take it out" if near else f"take it out; it has {', '.join(known)}"
        return Wrong(f"<{element}> has no attribute {name}", hint)
    if value is None or kinds[name].pattern.fullmatch(value):
        return None
    return Wrong(f"{name} of <{element}> cannot be {value[:40]!r}", kinds[name].advice)
