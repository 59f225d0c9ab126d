"""The renderer: what compiles, what is needed, what comes out, and what is refused with file and line."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from clarion.adapters.renderers import open_renderer, parts
from clarion.adapters.renderers.filters import known_filters
from clarion.adapters.renderers.language import TAGS
from clarion.adapters.renderers.parts import BRACE_BYTES
from clarion.adapters.renderers.renderer import LiquidRenderer
from clarion.domain.content import ChatContent, EmailContent, InboxContent, PushContent, SmsContent
from clarion.domain.definition import Definition
from clarion.domain.identity import Channel
from clarion.errors import InvalidInput, RenderFailed
from clarion.ports.renderer import FILES_OF, Bundle, Merge

MJML = "<mjml><mj-body><mj-section><mj-column>\n<mj-text>{}</mj-text>\n</mj-column></mj-section></mj-body></mjml>"


def sms(template: str, data: Mapping[str, object] | None = None, **fields: Any) -> str:
    """Compile and merge a text message."""
    content = open_renderer().merge(bundle_of(template, **fields), Channel.SMS, Merge(data or {}))
    assert isinstance(content, SmsContent)
    return content.text


def bundle_of(template: str, **fields: Any) -> Bundle:
    definition = Definition(key="a", title="A", channels=(Channel.SMS,), **fields)
    return open_renderer().compile(definition, {"sms.liquid": template})


def mail(body: str, data: Mapping[str, object] | None = None) -> EmailContent:
    """Compile and merge a mail whose HTML has one paragraph."""
    content = open_renderer().merge(mail_bundle(MJML.replace("{}", body)), Channel.EMAIL, Merge(data or {}))
    assert isinstance(content, EmailContent)
    return content


def mail_bundle(mjml: str, *, subject: str = "Hello", text: str = "Hello") -> Bundle:
    files = dict(zip(FILES_OF[Channel.EMAIL], (subject, mjml, text), strict=True))
    return open_renderer().compile(Definition(key="a", title="A", channels=(Channel.EMAIL,)), files)


def paragraph(content: EmailContent) -> str:
    """What stands in the one paragraph."""
    return content.html.split('text-align:left;color:#000000;">')[1].split("</div>")[0]


# What comes out.


def test_every_channel_has_its_content() -> None:
    definition = Definition(key="a", title="A", channels=tuple(Channel))
    files = {
        "email.subject.liquid": "Hi {{ name }}\n",
        "email.mjml.liquid": MJML.replace("{}", "Dear {{ name }}"),
        "email.text.liquid": "Dear {{ name }}\n",
        "sms.liquid": "Hi {{ name }}\n",
        "push.liquid": "Title for {{ name }}\nBody\nof two lines\n",
        "chat.liquid": "Hey {{ name }}",
        "inbox.liquid": "Title for {{ name }}\n\nBody for {{ name }}",
    }
    renderer = open_renderer()
    bundle = renderer.compile(definition, files)
    got = [renderer.merge(bundle, channel, Merge({"name": "Ann"})) for channel in Channel]
    assert isinstance(got[0], EmailContent)
    assert (got[0].subject, paragraph(got[0]), got[0].text) == ("Hi Ann", "Dear Ann", "Dear Ann")
    assert got[1:] == [
        SmsContent(text="Hi Ann"),
        PushContent(title="Title for Ann", body="Body\nof two lines"),
        ChatContent(text="Hey Ann"),
        InboxContent(title="Title for Ann", body="Body for Ann"),
    ]
    assert bundle.variables == dict.fromkeys(Channel, ("name",))


def test_a_template_without_its_own_memory_renders_the_same() -> None:
    """A stored bundle in another process: parsed anew, from what was stored."""
    bundle = mail_bundle(MJML.replace("{}", "{% for i in items %}{{ i }};{% endfor %}"))
    data = {"items": ["a", "b"]}
    assert LiquidRenderer().merge(bundle, Channel.EMAIL, Merge(data)) == LiquidRenderer().merge(
        bundle, Channel.EMAIL, Merge(data)
    )
    assert paragraph(mail("{% for i in items %}{{ i }};{% endfor %}", data)) == "a;b;"


def test_parsed_templates_are_held_up_to_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few or many they are, and about what their trees take: a tree of nothing but tags is large."""
    monkeypatch.setattr(parts, "PARSED_BYTES_MAX", 3 * BRACE_BYTES * 2000)
    renderer = LiquidRenderer()
    bundles = [bundle_of(f"{number}: " + "{{ name }}" * 900) for number in range(8)]
    for bundle in bundles:
        renderer.merge(bundle, Channel.SMS, Merge({"name": "A"}))
    assert len(renderer._cache.parsed) == 3
    assert renderer.merge(bundles[0], Channel.SMS, Merge({"name": "A"})) == SmsContent(text="0: " + "A" * 900)


def test_the_content_hash_changes_with_the_templates_and_the_definition_and_with_nothing_else() -> None:
    assert bundle_of("a").content_hash == bundle_of("a").content_hash
    assert (
        len({bundle_of("a").content_hash, bundle_of("b").content_hash, bundle_of("a", category="x").content_hash}) == 3
    )


def test_loops_in_a_table_stay_in_the_table() -> None:
    bundle = mail_bundle(
        MJML.replace(
            "<mj-text>{}</mj-text>",
            "<mj-table>{% for i in items %}<tr><td>{{ i.name }}</td></tr>{% endfor %}</mj-table>"
            "{% if total %}<mj-text>{{ total }}</mj-text>{% endif %}",
        )
    )
    content = open_renderer().merge(
        bundle, Channel.EMAIL, Merge({"items": [{"name": "Mug"}, {"name": "Cap"}], "total": "9"})
    )
    assert isinstance(content, EmailContent)
    assert "<tr><td>Mug</td></tr><tr><td>Cap</td></tr></table>" in content.html
    assert "{%" not in content.html


def test_a_comparison_may_hold_an_angle_bracket_and_an_attribute_may_hold_quotes() -> None:
    body = """{% if a < b %}less{% endif %}<a href="{{ url | default: "https://x.example/?a=1&amp;b=2" }}">go</a>"""
    assert paragraph(mail(body, {"a": 1, "b": 2})) == 'less<a href="https://x.example/?a=1&amp;b=2">go</a>'


def test_what_is_written_in_attributes_and_text_comes_out_as_it_was() -> None:
    body = '<a title="a\\b é \u200d \U0001f468\u200d\U0001f469 &quot; marks mark0x {{ x }}">\\ \u200d é mark1x</a>'
    assert paragraph(mail(body, {"x": "y"})) == body.replace("{{ x }}", "y")


def test_a_mail_fetches_no_fonts() -> None:
    assert "http" not in mail("Hello").html.replace("http-equiv", "").replace(
        "http://www.w3.org/1999/xhtml", ""
    ).replace("urn:schemas-microsoft-com", "")


@pytest.mark.parametrize(
    "template, data, expected",
    [
        ("{{ n | plus: 1 }}", {"n": 2}, "3"),
        ("{{ 'a,b' | split: ',' | join: ' and ' }}", {}, "a and b"),
        ("{{ 'aXbX' | replace: 'X', '-' }}", {}, "a-b-"),
        ("{{ items | map: 'name' | sort | join: ', ' }}", {"items": [{"name": "b"}, {"name": "a"}]}, "a, b"),
        ("{{ a | append: b | prepend: b | upcase }}", {"a": "x", "b": "y"}, "YXY"),
        (
            "{{ due | date: '%A, %-d %B %Y, %H:%M' }}",
            {"due": "2026-03-05T18:07:00+01:00"},
            "Thursday, 5 March 2026, 18:07",
        ),
        ("{{ due | date: '%d.%m.%y %I:%M %p %a %b %%' }}", {"due": 0}, "01.01.70 12:00 AM Thu Jan %"),
        ("{{ due | date }}", {"due": "2026-03-05"}, "2026-03-05"),
        ("{% for i in (1..3) %}{{ forloop.index }}{% unless forloop.last %},{% endunless %}{% endfor %}", {}, "1,2,3"),
        ("{% for i in list reversed %}{{ i }}{% else %}none{% endfor %}", {"list": []}, "none"),
        ("{% case n %}{% when 1 %}one{% else %}many{% endcase %}", {"n": 3}, "many"),
        ("{% assign x = name | upcase %}{% capture y %}<{{ x }}>{% endcapture %}{{ y }}", {"name": "a"}, "<A>"),
        ("{% comment %} {{ nothing }} {% endcomment %}ok{% # inline %}", {}, "ok"),
        ("{{ d.first.a }} {{ d.size }}", {"d": [{"a": 1}]}, "1 1"),
        ("{{ 0.1 | plus: 0.2 }} {{ 7 | divided_by: 2 }} {{ 7 | times: 1.5 }}", {}, "0.3 3 10.5"),
        ("{{ flag }}", {"flag": True}, "true"),
    ],
)
def test_liquid_does_what_its_authors_expect(template: str, data: dict[str, object], expected: str) -> None:
    assert sms(template, data) == expected


def test_the_reference_lists_every_tag_and_filter() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "notifications.md").read_text(encoding="utf-8")
    listed = {kind: re.findall(r"`(\w+)`", text) for kind, text in re.findall(r"- (Tags|Filters): ([^.]+)\.", page)}
    assert listed == {"Tags": listed["Tags"], "Filters": list(known_filters())}
    assert set(listed["Tags"]) == TAGS - {"#"}


# What is needed.


@pytest.mark.parametrize(
    "template, needed",
    [
        ("{{ a }} {{ b.c }} {{ b.d.e }}", ("a", "b.c", "b.d.e")),
        ("{{ a | default: 'x' }} {{ a.b | default: c | append: d }}", ("d",)),
        ("{{ a | upcase | default: 'x' }}", ("a",)),
        ("{% if a %}{{ a }}{{ b }}{% endif %}{{ c }}", ("c",)),
        ("{% unless a %}{{ b }}{% endunless %}{% case a %}{% when b %}{{ c }}{% endcase %}x", ()),
        ("{% for i in list %}{{ i.x }}{{ y }}{% endfor %}{{ list.size }}", ("list",)),
        ("{% for i in (1..n) %}{{ i }}{% endfor %}x", ("n",)),
        ("{% assign a = b %}{{ a }}{% capture c %}{{ d }}{% endcapture %}{{ c }}", ("b", "d")),
        ("{{ list[0].name }} {{ list.first }} {{ map[key] }}", ("key", "list", "map")),
        ("{{ a['b'] }} {{ a.c | append: d.e }}", ("a.b", "a.c", "d.e")),
        ("nothing", ()),
    ],
)
def test_what_every_merge_reads_is_found_without_a_merge(template: str, needed: tuple[str, ...]) -> None:
    assert bundle_of(template).variables == {Channel.SMS: needed}


def test_required_adds_to_what_the_templates_read() -> None:
    bundle = bundle_of("{{ a }}", required=("b", "child.name"))
    assert bundle.variables == {Channel.SMS: ("a", "b", "child.name")}
    assert open_renderer().missing(bundle, {"a": 1, "child": {}}) == ("b", "child.name")


@pytest.mark.parametrize(
    "template, data, missing",
    [
        ("{{ a }}{{ b.c }}", {}, ("a", "b.c")),
        ("{{ a }}{{ b.c }}", {"a": "", "b": {"c": 0}}, ()),
        ("{{ a }}", {"a": None}, ("a",)),
        ("{{ b.c }}", {"b": "text"}, ("b.c",)),
        ("{% if vip %}{{ discount }}{% endif %}x", {"vip": False}, ()),
        ("{% if vip %}{{ discount }}{% endif %}x", {"vip": True}, ("discount",)),
        ("{% if vip %}{{ discount }}{% endif %}x", {"vip": True, "discount": None}, ("discount",)),
        ("{% for i in list %}{{ i.name }}{% endfor %}x", {"list": []}, ()),
        ("{% for i in list %}{{ i.name }}{% endfor %}x", {"list": [{"name": "a"}, {}]}, ("i.name",)),
        ("{% for i in list %}{{ i.name }}{% endfor %}x", {}, ("list",)),
        ("{{ a | default: b }}", {}, ("b",)),
        ("{{ a | default: 'x' }}{% if a == 'y' or a contains 'z' or a > 1 %}{{ q }}{% endif %}", {}, ()),
        ("{{ list[3] }}", {"list": [1]}, ("list[3]",)),
        ("{{ now }}{{ today }}", {}, ("now", "today")),
    ],
)
def test_missing_names_exactly_what_a_merge_would_lack(
    template: str, data: dict[str, object], missing: tuple[str]
) -> None:
    bundle = bundle_of(template)
    assert open_renderer().missing(bundle, data) == missing
    if missing:
        with pytest.raises(RenderFailed, match="add it to the data"):
            open_renderer().merge(bundle, Channel.SMS, Merge(data))


def test_missing_looks_at_every_channel() -> None:
    definition = Definition(key="a", title="A", channels=(Channel.SMS, Channel.CHAT))
    bundle = open_renderer().compile(
        definition, {"sms.liquid": "{{ a }}", "chat.liquid": "{% if a %}{{ b }}{% endif %}x"}
    )
    assert open_renderer().missing(bundle, {"a": 1}) == ("b",)
    assert open_renderer().missing(bundle, {}) == ("a",)


def test_missing_leaves_other_failures_to_the_merge() -> None:
    bundle = bundle_of("{% if a %}{{ a | date: '%Y' }}{% endif %}x")
    assert open_renderer().missing(bundle, {"a": "soon"}) == ()
    with pytest.raises(RenderFailed, match=r"sms text: date takes an ISO 8601 date or time, or seconds"):
        open_renderer().merge(bundle, Channel.SMS, Merge({"a": "soon"}))


# What is refused when it is published.


@pytest.mark.parametrize(
    "template, complaint",
    [
        ("a\nb {{ name", r"sms.liquid: line 2: '{{' is not closed"),
        ("a\n{% if x %}", r"sms.liquid: line 2: '{% endif %}' is missing"),
        ("a\n\n{% endif %}", r"sms.liquid: line 3: the tag 'endif' is not available"),
        ("{{ a | }}", r"sms.liquid: line 1: this cannot be read as Liquid"),
        ("a\n{{ a b }}", r"sms.liquid: line 2: this cannot be read as Liquid, near 'b"),
        ("{% for i in (1..) %}{% endfor %}", r"line 1: this cannot be read as Liquid"),
        ("\n{{ a | shout }}", r"sms.liquid: line 2: there is no filter 'shout'; there are abs, append,"),
        ("{{ a | safe }}", r"there is no filter 'safe'"),
        ("\n{% include 'x' %}", r"sms.liquid: line 2: the tag 'include' is not available"),
        ("{% render 'x' %}", r"the tag 'render' is not available"),
        ("{% raw %}{{{% endraw %}", r"the tag 'raw' is not available"),
        ("{% tablerow i in l %}{% endtablerow %}", r"the tag 'tablerow' is not available"),
        ("{% if (1..3) contains 1 %}x{% endif %}", r"a range can only be looped over"),
        ("{% for i in l limit: (1..2) %}{% endfor %}", r"a range can only be looped over"),
        ("x" * 70_000, r"sms.liquid: the template has 70000 bytes"),
    ],
)
def test_a_wrong_template_is_refused_with_file_and_line(template: str, complaint: str) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        bundle_of(template)


@pytest.mark.parametrize(
    "mjml, complaint",
    [
        ("hello", r"email.mjml.liquid: line 1: this stands outside of <mjml>"),
        ("<html></html>", r"line 1: <html> is HTML, which cannot stand inside <mjml>"),
        (
            "<mjml><mj-body>\n<mj-section>\n</mj-body></mjml>",
            r"line 2: <mj-section> is not closed before </mj-body>: write </mj-section>",
        ),
        ("<mjml></mjml>\n<mj-body>", r"line 2: <mj-body> stands behind the end of <mjml>"),
        ("<mjml>\n<mj-boddy></mj-boddy></mjml>", r"line 2: MJML has no <mj-boddy>"),
        ('<mjml><mj-body>\n<mj-include path="/etc/passwd" /></mj-body></mjml>', r"line 2: files cannot be included"),
        (MJML.replace("{}", "1 < 2"), r"line 2: a '<' begins no element: write &lt;"),
        (MJML.replace("{}", '<a href="x>y</a>'), r"line 2: a \" is not closed, or what it begins holds a '<'"),
        (MJML.replace("{}", "<a href=x"), r"line 2: an element is not closed by '>'"),
        (MJML.replace("{}", "<b>" * 60 + "</b>" * 60), r"line 2: elements are nested more than 50 deep"),
        (MJML.replace("{}", "{{ a | shout }}"), r"line 2: there is no filter 'shout'"),
        (MJML.replace("{}", "\n\n{% if %}"), r"email.mjml.liquid: line 4: "),
        (MJML.replace("{}", """<a title='say "hi"'>x</a>"""), r"line 2: an attribute holds .*: write &quot;"),
        (MJML.replace("<mj-text>{}</mj-text>", "<mj-divider />" * 4000), r"bytes of HTML"),
    ],
)
def test_wrong_mjml_is_refused_with_file_and_line(mjml: str, complaint: str) -> None:
    with pytest.raises(InvalidInput, match=complaint):
        mail_bundle(mjml)


def test_html_that_needs_no_end_tag_and_comments_are_no_errors() -> None:
    assert paragraph(mail("a<br/>b<!-- <b> -->c<img src='x' alt='>'/>")).startswith("a<br />b")


def test_a_title_is_a_template_of_its_own() -> None:
    definition = Definition(key="a", title="A", channels=(Channel.INBOX,))
    with pytest.raises(InvalidInput, match=r"inbox.liquid: line 1: "):
        open_renderer().compile(definition, {"inbox.liquid": "{% if a %}Title\n{% endif %}body"})
    with pytest.raises(InvalidInput, match=r"inbox.liquid: line 3: there is no filter"):
        open_renderer().compile(definition, {"inbox.liquid": "Title\n\n{{ a | shout }}"})


def test_a_sample_that_cannot_be_merged_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"sms.liquid: line 1: it reads b, which the sample does not have"):
        bundle_of("{{ a }}{{ b }}", sample={"a": 1})
    with pytest.raises(InvalidInput, match=r"sms.liquid: line 1: with the sample, sms text: date takes an ISO 8601"):
        bundle_of("{{ a | date: '%Y' }}", sample={"a": "soon"})


def test_files_and_channels_must_agree() -> None:
    definition = Definition(key="a", title="A", channels=(Channel.SMS,))
    with pytest.raises(
        InvalidInput, match=r"sms.liquid: the definition lists the channel sms, and its file is missing"
    ):
        open_renderer().compile(definition, {})
    with pytest.raises(InvalidInput, match=r"chat.liquid: the definition does not list the channel chat"):
        open_renderer().compile(definition, {"sms.liquid": "a", "chat.liquid": "b"})
    with pytest.raises(InvalidInput, match=r"sns.liquid: no channel has a file of this name"):
        open_renderer().compile(definition, {"sms.liquid": "a", "sns.liquid": "b"})


# What is refused when it is sent.


def test_a_channel_that_the_notification_does_not_have_cannot_be_rendered() -> None:
    with pytest.raises(RenderFailed, match="has nothing for push"):
        open_renderer().merge(bundle_of("a"), Channel.PUSH, Merge({}))


@pytest.mark.parametrize("text", ["{% if a %}x{% endif %}", "  \n ", "{{ e }}"])
def test_a_message_with_nothing_in_it_is_not_sent(text: str) -> None:
    with pytest.raises(RenderFailed, match="nothing is left of it"):
        sms(text, {"e": ""})


@pytest.mark.parametrize(
    "line_break", ["\n", "\r\n", "\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]
)
def test_a_line_break_in_a_subject_is_refused(line_break: str) -> None:
    bundle = mail_bundle(MJML, subject="Hi {{ name }}")
    with pytest.raises(RenderFailed, match="email subject: it has more than one line"):
        open_renderer().merge(bundle, Channel.EMAIL, Merge({"name": f"Ann{line_break}Bcc: eve@x.example"}))
    with pytest.raises(InvalidInput, match="email subject: it has more than one line"):
        open_renderer().check(bundle, {"name": f"Ann{line_break}Bcc: eve@x.example"}, briefly=True)


@pytest.mark.parametrize(
    "template",
    ["{{ code | date: code }}", "{{ code.x }}", "{{ code | divided_by: 0 }}", "{{ l | sum }}", "{{ l | sort: 'x' }}"],
)
def test_an_error_repeats_no_data(template: str) -> None:
    with pytest.raises(RenderFailed) as caught:
        sms(template, {"code": "482913x", "l": ["482913x", 1]})
    assert "482913" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("value", [object(), {1, 2}, b"bytes", (1, 2), {"a": {"b": object()}}, [bytearray()]])
def test_data_is_plain(value: object) -> None:
    with pytest.raises(RenderFailed, match="which JSON does not have"):
        sms("x", {"value": value})
