"""Definitions: every field, every way to get one wrong, and the demo's own."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from clarion.adapters.renderers import open_renderer
from clarion.catalog.definition import parse_definition
from clarion.catalog.folder import read_folder
from clarion.catalog.publish import compile_folder
from clarion.domain.content import EmailContent, SmsContent
from clarion.domain.definition import ChannelPolicy, Definition
from clarion.domain.identity import Channel, Lane
from clarion.domain.outgoing import UncertainPolicy
from clarion.errors import InvalidInput
from clarion.ports.renderer import Bundle, Merge

DEMO = Path(__file__).parents[2] / "src/clarion/cli/definitions"
CASCADE = 'key = "a"\ntitle = "A"\nchannels = ["sms", "email"]\nchannel_policy = "cascade"\n'
MINIMAL = 'key = "a"\ntitle = "A"\nchannels = ["sms"]\n'


def test_every_field_is_read() -> None:
    definition = parse_definition(
        """
        key = "one-time-code"
        title = "Code"
        description = "A code."
        category = "security"
        channels = ["sms", "email"]
        lane = "critical"
        uncertain_policy = "prefer_duplicate"
        ttl_seconds = 300
        required = ["code", "child.name"]
        sample = { code = "1", list = [1, 2.5, true], child = { name = "x" }, recipient = { name = "y" } }
        channel_policy = "cascade"
        fallback_after_seconds = { sms = 60 }
        attempts_max = 3
        one_time_code = true
        may_unsubscribe = true
        locales = ["de", "pt-BR", "zh-Hant", "es-419"]
        layout = "school"
        links = { CODE_LINK = "https://app.example:8443/c/{{ entity.guid }}?a={{code}}#top", HOME = "{{ public_url }}" }
        """,
        file="definition.toml",
    )
    assert definition == Definition(
        key="one-time-code",
        title="Code",
        description="A code.",
        category="security",
        channels=(Channel.SMS, Channel.EMAIL),
        lane=Lane.CRITICAL,
        uncertain_policy=UncertainPolicy.PREFER_DUPLICATE,
        ttl_seconds=300,
        required=("code", "child.name"),
        sample={"code": "1", "list": [1, 2.5, True], "child": {"name": "x"}, "recipient": {"name": "y"}},
        channel_policy=ChannelPolicy.CASCADE,
        fallback_after_seconds={Channel.SMS: 60},
        attempts_max=3,
        one_time_code=True,
        may_unsubscribe=True,
        locales=("de", "pt-BR", "zh-Hant", "es-419"),
        layout="school",
        links={
            "CODE_LINK": "https://app.example:8443/c/{{ entity.guid }}?a={{code}}#top",
            "HOME": "{{ public_url }}",
        },
    )


@pytest.mark.parametrize(
    "text, complaint",
    [
        ("key = \nx", r"line 1: this is no TOML: correct the file"),
        ('title = "A"\nchannels = ["sms"]', r"the field key: it is missing"),
        (MINIMAL + "chanels = []", r"the field chanels: there is no such field"),
        (MINIMAL.replace('"sms"', '"fax"'), r"the field channels\[0\]: 'fax' is not one of its words"),
        (MINIMAL + 'lane = "fast"', r"the field lane: 'fast' is not one of its words"),
        (MINIMAL + 'ttl_seconds = "5 minutes"', r"the field ttl_seconds: it is text and must be a whole number"),
        (MINIMAL + "ttl_seconds = 0", r"the field ttl_seconds cannot be used: use 1 to 2592000"),
        (MINIMAL.replace('"a"', '"A b"'), r"the field key cannot be used: use 1 to 63 of a-z"),
        (MINIMAL.replace('"A"', '" "'), r"the field title cannot be used"),
        (MINIMAL + f'category = "{"学" * 60}"', r"the field category cannot be used: shorten it"),
        (MINIMAL + 'category = "e\u0301cole"', r"the field category cannot be used: write its letters composed"),
        (MINIMAL.replace('["sms"]', "[]"), r"the field channels cannot be used: list at least one"),
        (MINIMAL.replace('["sms"]', '["sms", "sms"]'), r"the field channels cannot be used: list each once"),
        (MINIMAL + 'required = ["a b"]', r"the field required cannot be used"),
        (MINIMAL + "sample = { due = 2026-03-05 }", r"the field sample cannot be used: .*write a date as text"),
        (MINIMAL + "sample = { list = [{ at = 10:00:00 }] }", r"the field sample cannot be used"),
        (MINIMAL + "sample = { recipient = 1 }", r"the field sample.recipient cannot be used: make it a table"),
        (MINIMAL + 'sample = { public_url = "x" }', r"the field sample.public_url cannot be used"),
        (MINIMAL + 'required = ["entity.name"]', r"the field required cannot be used: take 'entity.name' out"),
        (MINIMAL + "attempts_max = 21", r"the field attempts_max cannot be used: use 1 to 20"),
        (MINIMAL + "one_time_code = true", r"the field one_time_code cannot be used: add ttl_seconds"),
        (MINIMAL + "locales = []", r"the field locales cannot be used: list 1 to 50"),
        (MINIMAL + 'locales = ["de", "de"]', r"the field locales cannot be used: list each once"),
        (MINIMAL + 'locales = ["de_DE"]', r"the field locales cannot be used: .* not 'de_DE'"),
        (MINIMAL + 'layout = "../x"', r"the field layout cannot be used: name a file of layouts/"),
        (MINIMAL + 'links = { home = "https://a.example" }', r"the field links.home cannot be used: use upper-case"),
        (MINIMAL + 'channel_policy = "cascade"', r"the field channel_policy cannot be used: .*a second channel"),
        (MINIMAL + "fallback_after_seconds = { sms = 9 }", r"the field fallback_after_seconds .* goes with"),
        (CASCADE, r"fallback_after_seconds cannot be used: say how long to wait on sms before email is tried"),
        (CASCADE + "fallback_after_seconds = { sms = 9, email = 9 }", r"take email out: no channel follows it"),
        (CASCADE + "fallback_after_seconds = { sms = 0 }", r"the field fallback_after_seconds.sms cannot be used"),
        (CASCADE + "ttl_seconds = 9\nfallback_after_seconds = { sms = 9 }", r"wait less than ttl_seconds in all"),
    ],
)
def test_a_wrong_definition_is_one_line_that_names_file_and_field(text: str, complaint: str) -> None:
    with pytest.raises(InvalidInput, match=complaint) as caught:
        parse_definition(text, file="welcome/definition.toml")
    assert str(caught.value).startswith("welcome/definition.toml: ")
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    "link",
    [
        "http://app.example/",
        "https://",
        "https://{{ entity.host }}/",
        "https://app.example{{ entity.name }}/",
        "https://app.example@evil.example/",
        "https://-app.example/",
        "{{ entity.url }}",
        "{{ public_url }}.evil.example/",
        "javascript:alert(1)",
        "https://app.example/a b",
        'https://app.example/"><b>',
        "https://app.example/{{ entity.name | upcase }}",
        "https://app.example/{% if a %}b{% endif %}",
        "https://app.example/\\n",
    ],
)
def test_a_link_leads_where_the_definition_says_and_holds_plain_variables_only(link: str) -> None:
    with pytest.raises(InvalidInput, match=r"the field links.HOME cannot be used: begin with https://"):
        parse_definition(f"{MINIMAL}links = {{ HOME = '{link}' }}", file="definition.toml")


def test_a_version_that_was_stored_before_these_fields_came_is_read_and_is_the_same_today() -> None:
    """As the program wrote it before definitions had languages and links: same fields, same bytes, same hash."""
    stored = (
        '{"definition":{"key":"a","title":"A","description":"","category":"general","channels":["sms","inbox"],'
        '"lane":"normal","uncertain_policy":"prefer_loss","ttl_seconds":300,"required":[],"sample":{"name":"Ann"}},'
        '"parts":{"sms":{"text":"Hi {{ name }}"},"inbox":{"title":"Hi","body":"{{ name }}"}},'
        '"variables":{"sms":["name"],"inbox":["name"]},'
        '"content_hash":"h1:2ef973c40a0b680d2eae3d24d9837b82dcf53c7fe7b1118374d93dc668b98d4e"}'
    )
    bundle = msgspec.json.decode(stored, type=Bundle)
    assert bundle.definition == Definition(
        key="a", title="A", channels=(Channel.SMS, Channel.INBOX), ttl_seconds=300, sample={"name": "Ann"}
    )
    files = {"sms.liquid": "Hi {{ name }}", "inbox.liquid": "Hi\n{{ name }}"}
    assert open_renderer().compile(bundle.definition, files) == bundle
    assert open_renderer().merge(bundle, Channel.SMS, Merge({"name": "Ann"})) == SmsContent(text="Hi Ann")


@pytest.mark.parametrize(
    "changed",
    [
        {"channel_policy": ChannelPolicy.FIRST},
        {"attempts_max": 3},
        {"may_unsubscribe": True},
        {"locales": ("de",)},
        {"links": {"HOME": "https://a.example"}},
    ],
)
def test_a_change_of_a_newer_field_changes_the_content_hash(changed: dict[str, Any]) -> None:
    definition = Definition(key="a", title="A", channels=(Channel.SMS,))
    other = msgspec.structs.replace(definition, **changed)
    hashes = {open_renderer().compile(one, {"sms.liquid": "Hi"}).content_hash for one in (definition, other)}
    assert len(hashes) == 2


# The demo's own.


def test_the_demo_has_these_notifications() -> None:
    written, _ = read_folder(DEMO)
    definitions = {one.source.definition.key: one.source.definition for one in written}
    assert {key: one.channels for key, one in definitions.items()} == {
        "welcome": (Channel.EMAIL, Channel.INBOX),
        "invoice-due": (Channel.EMAIL, Channel.SMS, Channel.INBOX),
        "one-time-code": (Channel.SMS,),
        "incident": (Channel.EMAIL, Channel.SMS, Channel.INBOX),
        "newsletter": (Channel.EMAIL,),
        "certificate-expires": (Channel.EMAIL, Channel.INBOX),
        "invoice-reminder": (Channel.EMAIL, Channel.INBOX),
        "class-nearly-full": (Channel.EMAIL, Channel.INBOX),
        "work-anniversary": (Channel.INBOX,),
        "weekly-report": (Channel.EMAIL,),
    }
    code = definitions["one-time-code"]
    assert (code.lane, code.uncertain_policy, code.ttl_seconds) == (
        Lane.CRITICAL,
        UncertainPolicy.PREFER_DUPLICATE,
        300,
    )
    assert definitions["newsletter"].lane is Lane.BULK
    assert all(definition.sample for definition in definitions.values())


@pytest.mark.parametrize("key", ["welcome", "invoice-due", "one-time-code", "incident", "newsletter"])
def test_every_notification_of_the_demo_compiles_and_renders_its_sample(key: str) -> None:
    renderer = open_renderer()
    (bundle,) = compile_folder(DEMO / key, renderer)
    definition = bundle.definition
    for channel in definition.channels:
        content = renderer.merge(bundle, channel, Merge(definition.sample))
        assert "{{" not in repr(content)
        assert "{%" not in repr(content)
        if isinstance(content, EmailContent):
            assert "Linden Park School" in content.html
            assert "Linden Park School" in content.text


def test_the_welcome_needs_a_name_and_nothing_else() -> None:
    (bundle,) = compile_folder(DEMO / "welcome", open_renderer())
    assert open_renderer().missing(bundle, {"name": "you"}) == ()
    assert open_renderer().missing(bundle, {}) == ("name",)
