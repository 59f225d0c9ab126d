"""Notifications in several locales: which parts are merged, what is stored, and every mistake of every locale."""

import json
import signal
from pathlib import Path

import msgspec
import pytest

from clarion.adapters.renderers import child, open_renderer
from clarion.adapters.renderers.frame import ENCODER, Reply, Request, Work
from clarion.adapters.renderers.renderer import LiquidRenderer
from clarion.domain.content import EmailContent, SmsContent
from clarion.domain.definition import Definition
from clarion.domain.identity import Channel
from clarion.errors import InvalidInput
from clarion.ports.renderer import Bundle, Merge, NotCompiled, TemplateMistake

MJML = "<mjml>{}<mj-body><mj-section><mj-column>\n<mj-text>{}</mj-text>\n</mj-column></mj-section></mj-body></mjml>"
SMS = Definition(key="a", title="A", channels=(Channel.SMS,))
MAIL = Definition(key="a", title="A", channels=(Channel.EMAIL,))


def mail_files(*, subject: str = "Hello", body: str = "Hello", head: str = "", **others: str) -> dict[str, str]:
    mjml = MJML.replace("{}", head, 1).replace("{}", body)
    files = {"email.subject.liquid": subject, "email.mjml.liquid": mjml, "email.text.liquid": "Hello"}
    return files | {f"email.{part}.liquid": text for part, text in others.items()}


def mistakes_of(definition: Definition, files: dict[str, str], **locales: dict[str, str]) -> list[tuple[str, str, int]]:
    """Name locale, file and line of every mistake."""
    with pytest.raises(NotCompiled) as refused:
        open_renderer().compile(definition, files, locales=locales)
    return [
        (locale, error.field, error.line if isinstance(error, TemplateMistake) else 0)
        for locale, error in refused.value.mistakes
    ]


# What was stored before there were locales.


def test_a_bundle_that_was_stored_before_there_were_locales_renders_the_same_bytes() -> None:
    """It read `recipient` and `entity` from the data, because there was nothing else to read them from."""
    stored = json.loads((Path(__file__).parents[1] / "golden" / "bundle.json").read_text(encoding="utf-8"))
    bundle = msgspec.convert(stored["bundle"], Bundle)
    renderer = open_renderer()
    got = {str(channel): renderer.merge(bundle, channel, Merge(stored["data"])) for channel in Channel}
    assert msgspec.to_builtins(got) == stored["contents"]
    assert renderer.check(bundle, stored["data"])
    assert renderer.missing(bundle, stored["data"]) == ()


def test_what_did_not_change_keeps_its_content_hash_and_so_its_version() -> None:
    bundle = open_renderer().compile(SMS, {"sms.liquid": "Hello {{ name }}"})
    assert bundle.content_hash == "h1:93ec06e0070f8160cfe0695e1ebb4a980630507a0773d1d455b90b5d2df034c8"


# Which parts are merged.


@pytest.mark.parametrize(
    "locale, text",
    [
        ("", "Hi Ann"),
        ("en", "Hi Ann"),
        ("de", "Hallo Ann"),
        ("de-AT", "Hallo Ann"),
        ("de-CH", "Grüezi Ann"),
        ("fr", "Hi Ann"),
        ("nonsense!", "Hi Ann"),
    ],
)
def test_the_parts_of_the_locale_are_merged(locale: str, text: str) -> None:
    renderer = open_renderer()
    others = {"de": {"sms.liquid": "Hallo {{ name }}"}, "de-CH": {"sms.liquid": "Grüezi {{ name }}"}}
    bundle = renderer.compile(SMS, {"sms.liquid": "Hi {{ name }}"}, locales=others)
    assert renderer.merge(bundle, Channel.SMS, Merge({"name": "Ann"}, locale=locale)) == SmsContent(text=text)
    again = msgspec.json.decode(msgspec.json.encode(bundle), type=Bundle)
    assert LiquidRenderer().merge(again, Channel.SMS, Merge({"name": "Ann"}, locale=locale)) == SmsContent(text=text)


def test_another_text_in_another_locale_is_another_version() -> None:
    hashes = {
        open_renderer().compile(SMS, {"sms.liquid": "Hi"}, locales=locales).content_hash
        for locales in ({}, {"de": {"sms.liquid": "Hi"}}, {"de": {"sms.liquid": "Hallo"}}, {"fr": {"sms.liquid": "Hi"}})
    }
    assert len(hashes) == 4


def test_what_any_locale_needs_is_needed() -> None:
    renderer = open_renderer()
    others = {"de": {"sms.liquid": "{{ b }}{% for i in list %}{{ i.x }}{% endfor %}"}}
    bundle = renderer.compile(SMS, {"sms.liquid": "{{ a }}"}, locales=others)
    assert bundle.variables == {Channel.SMS: ("a", "b", "list")}
    assert renderer.missing(bundle, {"list": []}) == ("a", "b")
    assert renderer.missing(bundle, {"a": 1, "b": 1, "list": [{}]}) == ("i.x",)
    with pytest.raises(InvalidInput, match=r"needs i\.x"):
        renderer.check(bundle, {"a": 1, "b": 1, "list": [{}]})
    assert renderer.check(bundle, {"a": 1, "b": 1, "list": [{"x": 1}]})


def test_a_locale_that_differs_only_in_its_words_is_not_tried_again() -> None:
    renderer = LiquidRenderer()
    others = {
        "de": {"sms.liquid": "Liebe{% if b %} {{ a }}{% endif %}"},
        "fr": {"sms.liquid": "{% if b %}{{ c }}{% endif %}x"},
    }
    bundle = renderer.compile(SMS, {"sms.liquid": "Dear{% if b %} {{ a }}{% endif %}"}, locales=others)
    assert [list(parts) for _, parts in renderer._cache.tried(bundle)] == [["text"], ["text"]]
    assert renderer.missing(bundle, {"b": True, "a": 1}) == ("c",)


def test_in_a_process_that_merges_each_locale_has_its_own_time_to_be_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the parent hears that it is at work; what is parsed already takes no such time."""
    limits: list[float] = []
    replies: list[Reply] = []
    monkeypatch.setattr(signal, "setitimer", lambda _which, seconds: limits.append(seconds))
    others = {locale: {"sms.liquid": f"{{{{ {locale} }}}}"} for locale in ("de", "fr")}
    bundle = LiquidRenderer().compile(SMS, {"sms.liquid": "Hello"}, locales=others)
    data = msgspec.Raw(ENCODER.encode(Merge({"de": 1, "fr": 1}, locale="de")))
    working = child.Child(LiquidRenderer(), lambda: 0.0, replies.append)
    at_work = Reply([], is_last=False)
    for work, channel, locales in ((Work.CHECK, None, 3), (Work.MERGE, Channel.SMS, 1)):
        for parsed in (locales, 0):
            request = Request(work, bundle.content_hash, bundle, channel, [data], seconds=1.0, each=False)
            working.serve(request)
            assert limits == [*[child.PARSING_SECONDS_MAX] * (1 + parsed), child.PROCESSOR_SECONDS_MAX, 0]
            assert replies[:-1] == [at_work] * parsed
            assert replies[-1].is_last
            assert len(replies[-1].answers) == 1
            limits.clear()
            replies.clear()


# Every mistake of every locale.


def test_every_file_of_every_locale_is_looked_at_in_one_run() -> None:
    good = mail_files()
    bad = mail_files(subject="{{ a", body="\n{{ a | shout }}", preheader="{% if %}")
    assert mistakes_of(MAIL, bad, de=good, fr={**good, "email.text.liquid": "\n\n{% endif %}"}) == [
        ("", "email.subject.liquid", 1),
        ("", "email.mjml.liquid", 3),
        ("", "email.preheader.liquid", 1),
        ("fr", "email.text.liquid", 3),
    ]
    assert mistakes_of(MAIL, good, de={"email.subject.liquid": "x"}) == [
        ("de", "email.mjml.liquid", 0),
        ("de", "email.text.liquid", 0),
    ]


def test_the_sample_is_merged_in_every_locale() -> None:
    definition = msgspec.structs.replace(SMS, sample={"at": "soon"})
    files = {"sms.liquid": "{{ at }}"}
    assert mistakes_of(definition, files, de={"sms.liquid": "{{ at | date }}"}) == [("de", "sms.liquid", 1)]


# The preheader.


def test_a_preheader_is_the_first_text_of_the_body_and_not_seen() -> None:
    renderer = open_renderer()
    bundle = renderer.compile(MAIL, mail_files(preheader='Fish & chips < {{ name }} "now"\n', body="Dear {{ name }}"))
    content = renderer.merge(bundle, Channel.EMAIL, Merge({"name": "<Ann>"}))
    assert isinstance(content, EmailContent)
    hidden = content.html.split("<body", 1)[1].split(">", 1)[1]
    assert hidden.startswith('<div style="display:none;')
    assert hidden.split(">", 1)[1].startswith("Fish &amp; chips &lt; &lt;Ann&gt; &quot;now&quot;</div>")
    assert renderer.missing(bundle, {}) == ("name",)


def test_a_preheader_beside_a_preview_is_refused() -> None:
    files = mail_files(preheader="Hello", head="<mj-head><mj-preview>Hi</mj-preview></mj-head>")
    assert mistakes_of(MAIL, files) == [("", "email.preheader.liquid", 1)]


def test_a_preheader_belongs_to_a_mail() -> None:
    with pytest.raises(InvalidInput, match="the definition does not list the channel email"):
        open_renderer().compile(SMS, {"sms.liquid": "x", "email.preheader.liquid": "x"})


@pytest.mark.parametrize("attribute", ['inline="inline"', "inline='inline'", "inline", 'css-class="a" INLINE="x"'])
def test_styles_that_would_be_put_into_every_mail_are_refused(attribute: str) -> None:
    head = f"<mj-head>\n<mj-style {attribute}>.a {{ color: red }}</mj-style></mj-head>"
    with pytest.raises(InvalidInput, match=r"email.mjml.liquid: line 2: <mj-style inline> .*: take inline out") as said:
        open_renderer().compile(MAIL, mail_files(head=head))
    assert "mj-class" in said.value.hint
    open_renderer().compile(MAIL, mail_files(head=head.replace(f" {attribute}", "")))
