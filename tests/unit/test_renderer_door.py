"""What the renderer finds out at the door, where the links of a mail lead, and what its subject shows."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from clarion.adapters.renderers import open_renderer
from clarion.adapters.renderers.given import sample_of
from clarion.catalog.publish import compile_folder
from clarion.domain.content import EmailContent
from clarion.domain.identity import Channel
from clarion.errors import InvalidInput, RenderFailed
from clarion.ports.renderer import Merge
from tests.unit.test_renderer import MJML, bundle_of, mail, mail_bundle


def door(template: str, data: Mapping[str, object], *, subject: str = "Hello") -> bool:
    """Check the data of a mail."""
    renderer = open_renderer()
    return renderer.check(mail_bundle(MJML.replace("{}", template), subject=subject), data, briefly=True)


@pytest.mark.parametrize(
    "template, data, complaint",
    [
        (
            "{{ at | date: '%Y' }}",
            {"at": "soon"},
            r"data: it cannot be merged: email html: date takes an ISO 8601 date or time",
        ),
        (
            "{% if at %}{{ at | date: '%Y' }}{% endif %}",
            {"at": "soon"},
            r"email html: date takes an ISO 8601 date or time",
        ),
        ("{{ l | sort: 'x' }}", {"l": [1, "a"]}, r"email html: the merge failed"),
        ("{% if a %}{{ b }}{% endif %}", {"a": 1}, r"data: the notification type 'a' needs b: add what is missing"),
        ("{{ a }}", {}, r"needs a: add"),
        ("x", {"a": float("nan")}, r"it cannot be merged: a number is too large"),
        ("{{ s }}" * 12, {"s": "\N{GRINNING FACE}" * 12_000}, r"email html: it becomes longer than 524288 bytes"),
    ],
)
def test_data_that_cannot_be_merged_is_refused_by_the_check(
    template: str, data: Mapping[str, object], complaint: str
) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        open_renderer().check(mail_bundle(MJML.replace("{}", template)), data)


@pytest.mark.parametrize(
    "subject, data, complaint",
    [
        ("Hi {{ name }}", {"name": "Ann\nBcc: eve@x.example"}, "email subject: it has more than one line"),
        ("{{ name }}", {"name": " "}, "email subject: nothing is left of it"),
        ("Hi\n{{ name }}", {"name": "Ann"}, "email subject: it has more than one line"),
        ("Hi {{ name }}", {"name": "a\0b"}, "email subject: it holds a control character"),  # no server takes it
        ("Hi {{ name }}", {"name": "a\x1b]0;b\x07"}, "email subject: it holds a control character"),
        ("Hi {{ name }}", {"name": "a\tb"}, "email subject: it holds a control character"),
        ("Hi {{ name | default: 'you' }}", {"name": "a\rb"}, "email subject: it has more than one line"),
        ("Hi {{ name.first }}", {"name": {"first": "a\nb"}}, "email subject: it has more than one line"),
        ("Hi {{ name }}", {"name": "a" * 400}, "email subject: it has 403 characters: use at most 400"),
        ("Hi {{ name }}{{ name }}", {"name": "\N{GRINNING FACE}" * 200}, "email subject: it has 403 characters"),
        ("Hi" + " there" * 66 + "{{ name }}", {"name": "you"}, "email subject: it has 401 characters"),
        ("{{ name }}", {"name": "=?utf-8?q?hi=0aBcc=3A_eve?="}, "email subject: it holds a control character"),
        ("{{ name }}", {"name": "=?no-such-charset?q?hi?="}, "email subject: it holds an encoded word that cannot be"),
        ("{{ name }}", {"name": "\u202e"}, "email subject: nothing is left of it"),
    ],
)
def test_a_subject_that_cannot_be_sent_is_refused_by_the_check(
    subject: str, data: Mapping[str, object], complaint: str
) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        door("x", data, subject=subject)


def test_what_takes_long_is_left_to_a_check_that_has_time() -> None:
    renderer = open_renderer()
    light, heavy, too_heavy = (
        bundle_of(f"{{% for i in (1..{rounds}) %}}{{% if a == i %}}{{{{ b }}}}{{% endif %}}{{% endfor %}}x")
        for rounds in (9, 400, 9999)
    )
    never = {"a": 10_000}
    assert renderer.check(light, never, briefly=True)
    for bundle in (heavy, too_heavy):
        assert not renderer.check(bundle, never, briefly=True)
    assert renderer.check(heavy, never)
    with pytest.raises(InvalidInput, match="the template does too much work"):
        renderer.check(too_heavy, never)
    with pytest.raises(InvalidInput, match="needs b"):
        renderer.check(too_heavy, {"a": 3}, briefly=True)


def test_a_large_template_is_not_parsed_by_somebody_in_a_hurry() -> None:
    renderer, bundle = open_renderer(), bundle_of("{{ a }}" * 1000)
    assert not renderer.check(bundle, {"a": 1}, briefly=True)
    assert renderer.check(bundle, {"a": 1})
    assert renderer.check(bundle, {"a": 1}, briefly=True), "by now it is in memory"


VALUES: list[object] = ["text", "", 7, -1, 1.5, True, False, [], ["a", 1], {}, {"a": {"b": [1]}}, "\u202e\n", "<b>"]


@pytest.mark.parametrize("name", ["capitalize", "default: 'x'", "downcase", "escape", "strip", "upcase"])
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_plain_part_fails_for_no_value(name: str, value: object) -> None:
    """It is not merged at the door, because it could not be refused: these filters take everything."""
    assert mail(f"{{{{ a | {name} }}}}{{{{ a }}}}", {"a": value}).html


@pytest.mark.parametrize("key", ["welcome", "invoice-due", "one-time-code", "incident", "newsletter"])
def test_the_samples_of_the_demo_are_checked_at_once(key: str) -> None:
    renderer = open_renderer()
    (bundle,) = compile_folder(Path(__file__).parents[2] / "src/clarion/cli/definitions" / key, renderer)
    sample = sample_of(bundle.definition)
    assert renderer.check(bundle, sample.data, entity=sample.entity, briefly=True)


# Where links lead.

BUTTON = '<a href="{{ link }}">more</a>'


@pytest.mark.parametrize(
    "link",
    [
        *("javascript:alert(1)", "JavaScript:alert(1)", " java\tscript:alert(1)", "\x01javascript:alert(1)"),
        *("data:text/html,x", "vbscript:x", "http://example.com", "//example.com", "example.com/https:", "/x", "x"),
        *("&#106;avascript:alert(1)", "https&colon;//x", "file:///etc/passwd", "ftp://x", "tel", "mailtox:a@b"),
    ],
)
def test_a_link_from_the_data_leads_by_https_mailto_or_tel_or_nowhere(link: str) -> None:
    for template in (
        BUTTON,
        "<a href='{{ link }}'>more</a>",
        '<a class="x" HREF = "{{ link | strip }}?a=1">more</a>',
        '{% capture c %}{{ link }}{% endcapture %}<a href="{% if link %}{{ c }}{% endif %}">more</a>',
        '<a href="{{ link | slice: 0, 4 }}{{ link | slice: 4, 100 }}">more</a>',
        f'<a href="">top</a>{BUTTON}',  # a link that its author left empty allows none
    ):
        with pytest.raises(
            RenderFailed, match="a link that comes from the data is neither https: nor mailto: nor tel:"
        ):
            mail(template, {"link": link})
        with pytest.raises(InvalidInput, match="a link that comes from the data"):
            door(template, {"link": link})


ELSEWHERE = (
    '<button formaction="{{ link }}">x</button>',
    '<img src="{{ link }}" alt="x" />',
    '<img srcset="https://a.example/x.png 1x, {{ link }} 2x" alt="x" />',
    '<img srcset="{{ link }}" alt="x" />',
    '<video poster="{{ link }}"></video>',
    '<td background="{{ link }}">x</td>',
    '<svg><a xlink:href="{{ link }}">x</a></svg>',
    '<object data="{{ link }}"></object>',
    '<meta http-equiv="refresh" content="0; url={{ link }}" />',
    "<meta http-equiv='refresh' content='0;{{ link }}' />",
    '<p style="background: url({{ link }})">x</p>',
    '<p style="background: url(&quot;{{ link }}&quot;)">x</p>',
    '<p style="color: {{ link }}; background: url(/x.png)">x</p>',
    '<a title="{{ link }}" href="{{ link }}">x</a>',
)
"""Other places than the `href` of a link."""


@pytest.mark.parametrize("template", ELSEWHERE)
def test_a_link_from_the_data_is_judged_wherever_a_client_would_follow_it(template: str) -> None:
    bad = "javascript:alert(1)" if "color" not in template else r"red; background: u\72l(http://a.example)"
    good = "https://a.example/x.png" if "color" not in template else "red"
    with pytest.raises(RenderFailed, match=r"in .*, a link that comes from the data is neither"):
        mail(template, {"link": bad})
    with pytest.raises(InvalidInput, match="a link that comes from the data"):
        door(template, {"link": bad})
    assert good in mail(template, {"link": good}).html


def test_a_beginning_that_its_author_wrote_in_one_attribute_allows_nothing_in_another() -> None:
    template = '<img src="data:{{ picture }}" alt="x" />' + BUTTON
    assert mail(template, {"picture": "image/png,x", "link": "https://a.example"}).html
    with pytest.raises(RenderFailed, match="in href, a link"):
        mail(template, {"picture": "image/png,x", "link": "data:text/html,x"})


def test_a_picture_behind_a_section_of_mjml_is_judged() -> None:
    section = MJML.replace("<mj-section>", '<mj-section background-url="{{ link }}">')
    renderer, bundle = open_renderer(), mail_bundle(section)
    assert "https://a.example/b.png" in repr(
        renderer.merge(bundle, Channel.EMAIL, Merge({"link": "https://a.example/b.png"}))
    )
    with pytest.raises(RenderFailed, match="a link that comes from the data"):
        renderer.merge(bundle, Channel.EMAIL, Merge({"link": "http://a.example/b.png"}))


@pytest.mark.parametrize(
    "template, where",
    [
        ("<a {{ x }}>more</a>", "in <a>, outside of quotes"),
        ("<a href={{ x }}>more</a>", "in <a>, outside of quotes"),
        ("<a {% if x %}{{ x }}{% endif %}>more</a>", "in <a>, outside of quotes"),
        ("<a {% echo x %}>more</a>", "in <a>, outside of quotes"),
        ('<a onclick="go({{ x }})">more</a>', "in the attribute onclick"),
        ('<iframe srcdoc="{{ x }}"></iframe>', "in the attribute srcdoc"),
        ('<meta http-equiv="{{ x }}" content="0" />', "in the attribute http-equiv"),
        ("<script>go({{ x }})</script>", "in <script>"),
        ("<style>a { color: {{ x }} }</style>", "in <style>"),
    ],
)
def test_data_that_could_mean_anything_where_it_stands_is_not_published(template: str, where: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(where)) as refused:
        mail("one line\n" + template, {"x": "1"})
    assert "email.mjml.liquid: line " in str(refused.value)
    assert "put it into the quotes of another attribute" in str(refused.value)


@pytest.mark.parametrize(
    "template",
    [
        '<a class="{% if x %}y{% endif %}" href="https://a.example">more</a>',
        '<a title="{{ x | replace: "a", "b" }}" href="https://a.example">more</a>',
        "<!-- {{ x }} --><b>{{ x }}</b>",
        '<p style="color: {{ x }}">more</p>',
        '<meta name="x" content="{{ x }}" />',
    ],
)
def test_data_in_quotes_and_liquid_that_writes_nothing_may_stand_in_an_element(template: str) -> None:
    assert mail(template, {"x": "red"}).html


@pytest.mark.parametrize(
    "link",
    ["https://example.com/a?b=c:d#e", "HTTPS://example.com", "mailto:a@b.example", "tel:+44123", "#top", "", " "],
)
def test_a_link_from_the_data_by_one_of_them_stays_as_it_is(link: str) -> None:
    assert f'href="{link}"' in mail(BUTTON, {"link": link}).html


@pytest.mark.parametrize(
    "template",
    [
        '<a href="http://intranet.example/{{ x }}">a</a>',
        '<a href="http://{{ x }}">a</a>',
        '<a href="sms:{{ x }}">a</a>',
        '<a href="/{{ x }}">a</a>',
        '<a href="overview.html">a</a>',
    ],
)
def test_a_link_that_its_author_wrote_is_left_to_its_author(template: str) -> None:
    """Also beside one that the data writes."""
    data = {"x": "javascript:1", "link": "https://example.com"}
    assert mail(template, data).html
    assert mail(template + BUTTON, data).html
    with pytest.raises(RenderFailed, match="a link that comes from the data"):
        mail(template + BUTTON, data | {"link": "javascript:1"})


def test_text_that_looks_like_a_link_is_text() -> None:
    assert (
        "href=&#34;javascript:"
        in mail(BUTTON + "{{ x }}", {"link": "https://a.example", "x": '<a href="javascript:'}).html
    )


def test_a_button_of_mjml_has_its_link_judged() -> None:
    button = MJML.replace("<mj-text>{}</mj-text>", '<mj-button href="{{ link }}">Go</mj-button>')
    renderer, bundle = open_renderer(), mail_bundle(button)
    assert 'href="https://a.example"' in repr(
        renderer.merge(bundle, Channel.EMAIL, Merge({"link": "https://a.example"}))
    )
    with pytest.raises(RenderFailed, match="a link that comes from the data"):
        renderer.merge(bundle, Channel.EMAIL, Merge({"link": "data:text/html,x"}))


@pytest.mark.parametrize(
    "mark", ["\u202a", "\u202b", "\u202c", "\u202d", "\u202e", "\u2066", "\u2067", "\u2068", "\u2069"]
)
def test_a_subject_shows_its_letters_in_the_order_in_which_they_stand(mark: str) -> None:
    bundle = mail_bundle(MJML, subject=f"Invoice {{{{ file }}}}{mark}")
    content = open_renderer().merge(bundle, Channel.EMAIL, Merge({"file": f"a{mark}fdp.exe"}))
    assert isinstance(content, EmailContent)
    assert content.subject == "Invoice afdp.exe"


def test_text_that_is_written_from_right_to_left_stays_whole() -> None:
    words = "\u05e9\u05dc\u05d5\u05dd \u200f\u0645\u0631\u062d\u0628\u0627\u200e"
    bundle = mail_bundle(MJML, subject="{{ words }}")
    content = open_renderer().merge(bundle, Channel.EMAIL, Merge({"words": words}))
    assert isinstance(content, EmailContent)
    assert content.subject == words
