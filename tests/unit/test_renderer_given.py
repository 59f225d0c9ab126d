"""What templates read besides the data: the recipient, the entity, the public URL and the definition's links."""

from typing import Any

import pytest

from clarion.adapters.renderers import open_renderer
from clarion.domain.content import EmailContent, SmsContent
from clarion.domain.definition import Definition
from clarion.domain.identity import Channel
from clarion.errors import BadConfiguration, InvalidInput, RenderFailed
from clarion.ports.renderer import Bundle, Merge, NotCompiled, NotMerged

LINKS = {
    "INCIDENT_DETAILS_LINK": "https://app.example/incidents/{{ entity.guid }}?by={{ entity.name }}&n={{ number }}",
    "UNSUBSCRIBE_LINK": "{{ public_url }}/people/{{ recipient.id }}",
}
MJML = "<mjml><mj-body><mj-section><mj-column><mj-text>{}</mj-text></mj-column></mj-section></mj-body></mjml>"


def bundle_of(template: str, **fields: Any) -> Bundle:
    definition = Definition(key="a", title="A", channels=(Channel.SMS,), links=LINKS, **fields)
    return open_renderer().compile(definition, {"sms.liquid": template})


def sms(template: str, **given: Any) -> str:
    content = open_renderer().merge(bundle_of(template), Channel.SMS, Merge(given.pop("data", {}), **given))
    assert isinstance(content, SmsContent)
    return content.text


def mail(body: str, **given: Any) -> EmailContent:
    definition = Definition(key="a", title="A", channels=(Channel.EMAIL,), links=LINKS)
    files = {"email.subject.liquid": "a", "email.text.liquid": "a", "email.mjml.liquid": MJML.replace("{}", body)}
    content = open_renderer().merge(open_renderer().compile(definition, files), Channel.EMAIL, Merge({}, **given))
    assert isinstance(content, EmailContent)
    return content


# What is read.


def test_a_template_reads_the_recipient_the_entity_and_the_data() -> None:
    text = sms(
        "{{ recipient.name }} {{ entity.type }} {{ entity.guid }} {{ recipient.address.city }} {{ name }}",
        data={"name": "data"},
        recipient={"name": "Ann", "address": {"city": "Graz"}},
        entity={"type": "child", "guid": "7"},
    )
    assert text == "Ann child 7 Graz data"


def test_a_link_is_made_of_the_definition_with_every_value_encoded() -> None:
    text = sms(
        "{{INCIDENT_DETAILS_LINK}} {{ UNSUBSCRIBE_LINK }}",
        data={"number": 7},
        recipient={"id": "a/b?c#d"},
        entity={"guid": "../../admin", "name": "Zoë & Tom"},
        public_url="https://clarion.school.example/x",
    )
    assert text == (
        "https://app.example/incidents/..%2F..%2Fadmin?by=Zo%C3%AB%20%26%20Tom&n=7 "
        "https://clarion.school.example/x/people/a%2Fb%3Fc%23d"
    )


def test_a_link_in_a_mail_is_its_authors_wherever_the_public_url_leads() -> None:
    """A developer's machine has no https; a link from the data still needs it."""
    body = '<a href="{{ UNSUBSCRIBE_LINK }}">x</a><a href="{{ recipient.site }}">y</a>'
    mine = {"id": "7", "site": "https://a.example"}
    html = mail(body, recipient=mine, public_url="http://127.0.0.1:8025").html
    assert '<a href="http://127.0.0.1:8025/people/7">x</a>' in html
    with pytest.raises(RenderFailed, match="a link that comes from the data"):
        mail(
            body, recipient={**mine, "site": "http://127.0.0.1:80251.evil.example/"}, public_url="http://127.0.0.1:8025"
        )


def test_a_field_of_the_recipient_is_escaped_in_a_mail() -> None:
    assert ">&lt;b&gt;Ann</div>" in mail("{{ recipient.name }}", recipient={"name": "<b>Ann"}).html


def test_the_bundle_says_which_channels_read_the_recipient() -> None:
    definition = Definition(key="a", title="A", channels=(Channel.SMS, Channel.CHAT, Channel.PUSH), links=LINKS)
    files = {
        "sms.liquid": "{% if vip %}{{ recipient.name }}{% endif %}x",
        "chat.liquid": "{{ INCIDENT_DETAILS_LINK }}",
        "push.liquid": "x\n{{ UNSUBSCRIBE_LINK }}",
    }
    bundle = open_renderer().compile(definition, files)
    assert bundle.reads == {
        Channel.SMS: ("recipient",),
        Channel.CHAT: ("INCIDENT_DETAILS_LINK", "entity"),
        Channel.PUSH: ("UNSUBSCRIBE_LINK", "public_url", "recipient"),
    }
    assert [bundle.reads_recipient(channel) for channel in definition.channels] == [True, False, True]
    assert bundle.variables == {
        Channel.SMS: (),
        Channel.CHAT: ("entity.guid", "entity.name", "number"),
        Channel.PUSH: (),
    }
    assert open_renderer().compile(definition, {**files, "sms.liquid": "x"}).reads.get(Channel.SMS) is None


def test_what_another_locale_reads_counts_too() -> None:
    definition = Definition(key="a", title="A", channels=(Channel.SMS,))
    bundle = open_renderer().compile(
        definition, {"sms.liquid": "x"}, locales={"de": {"sms.liquid": "{{ recipient.name }}"}}
    )
    assert bundle.reads_recipient(Channel.SMS)


# What is missing.


@pytest.mark.parametrize(
    "template, said",
    [
        ("{{ recipient.name }}", "there is no recipient.name: add it to the person's profile, or give it a default"),
        ("{{ entity.name }}", "there is no entity.name: add it to the entity"),
        ("{{ INCIDENT_DETAILS_LINK }}", "there is no entity.guid: add it to the entity"),
        ("{{ name }}", "there is no name: add it to the data"),
    ],
)
def test_a_merge_names_what_it_lacks(template: str, said: str) -> None:
    with pytest.raises(RenderFailed, match=said):
        sms(template)


def test_a_default_and_a_test_stand_for_what_is_missing() -> None:
    template = "{{ recipient.name | default: 'parents' }}{% if INCIDENT_DETAILS_LINK %}!{% endif %}"
    assert sms(template) == "parents"


def test_the_door_does_not_ask_for_what_only_the_recipient_has() -> None:
    renderer = open_renderer()
    for template in (
        "{{ recipient.name }} {{ a }}",
        "{{ recipient.name | upcase }}{% for i in list %}{{ i.x }}{% endfor %} {{ a }}",
        "{{ recipient.born | date: 'long' }} {{ a }}",
        "{% unless recipient.vip %}{{ b }}{% endunless %} {{ a }}",
        "{% for i in recipient.children %}{{ i.name }}{% endfor %} {{ a }}",
        "{{ UNSUBSCRIBE_LINK }} {{ a }}",
    ):
        bundle = bundle_of(template)
        assert renderer.missing(bundle, {"list": []}) == ("a",)
        assert renderer.check(bundle, {"a": 1, "list": []})
        with pytest.raises(InvalidInput, match=r"data: the notification type 'a' needs a"):
            renderer.check(bundle, {"list": []})


def test_the_door_still_merges_what_merely_writes_the_recipient() -> None:
    bundle = bundle_of("{{ recipient.name }}: {% for i in list %}{{ i.x }}{% endfor %}")
    assert open_renderer().missing(bundle, {"list": [{}]}) == ("i.x",)
    with pytest.raises(InvalidInput, match=r"needs i\.x"):
        open_renderer().check(bundle, {"list": [{}]})


def test_the_door_asks_for_the_entity() -> None:
    renderer, bundle = open_renderer(), bundle_of("{{ INCIDENT_DETAILS_LINK }}")
    assert renderer.missing(bundle, {"number": 1}) == ("entity.guid", "entity.name")
    with pytest.raises(InvalidInput, match=r"entity: .* needs entity.guid, entity.name: name the entity"):
        renderer.check(bundle, {"number": 1})
    assert renderer.check(bundle, {"number": 1}, entity={"guid": "7", "name": "x"})


@pytest.mark.parametrize("name", ["recipient", "entity", "public_url", "INCIDENT_DETAILS_LINK"])
@pytest.mark.parametrize("template", ["x", "{{ recipient.name }}{{ entity.guid }}{{ INCIDENT_DETAILS_LINK }}"])
def test_a_reserved_name_is_refused_in_data(name: str, template: str) -> None:
    with pytest.raises(InvalidInput, match=f"data.{name}: the name is reserved"):
        open_renderer().check(bundle_of(template), {name: {"guid": "7"}, "number": 1}, entity={"guid": "7", "name": ""})


def test_data_cannot_take_the_place_of_what_is_reserved() -> None:
    """A job that was accepted before the name was reserved."""
    assert sms("{{ recipient.name }}", data={"recipient": {"name": "Eve"}}, recipient={"name": "Ann"}) == "Ann"
    text = sms(
        "{{ INCIDENT_DETAILS_LINK }}",
        data={"number": 1, "INCIDENT_DETAILS_LINK": "https://evil.example"},
        entity={"guid": "7", "name": "x"},
    )
    assert text == "https://app.example/incidents/7?by=x&n=1"


def test_without_a_public_url_nothing_is_merged_and_nothing_ends() -> None:
    bundle = bundle_of("{{ UNSUBSCRIBE_LINK }}")
    merge = Merge({}, recipient={"id": "7"})
    with pytest.raises(BadConfiguration, match="set CLARION_PUBLIC_URL"):
        open_renderer().merge(bundle, Channel.SMS, merge)
    merged = open_renderer().merged(bundle, Channel.SMS, merge)
    assert isinstance(merged, NotMerged)
    assert merged.is_held, "or it would be claimed and merged four times a second"
    assert not merged.counts


@pytest.mark.parametrize("value", [["7"], {"a": 1}, None])
def test_a_link_takes_texts_and_numbers_only(value: object) -> None:
    with pytest.raises(RenderFailed, match=r"there is no entity\.guid"):
        sms("{{ INCIDENT_DETAILS_LINK }}", data={"number": 1}, entity={"guid": value, "name": "x"})


# The sample.


def test_the_sample_stands_for_recipient_and_entity() -> None:
    template = "{{ recipient.name }} {{ INCIDENT_DETAILS_LINK }} {{ UNSUBSCRIBE_LINK }}"
    sample: dict[str, object] = {
        "number": 1,
        "recipient": {"name": "Ann", "id": "1"},
        "entity": {"guid": "7", "name": "x"},
    }
    bundle_of(template, sample=sample)
    for lacking, said in (
        ({"recipient": {"id": "1"}}, "recipient.name"),
        ({"recipient": {"name": "Ann"}}, "recipient.id"),
        ({"entity": {"guid": "7"}}, "entity.name"),
        ({"number": None}, "number"),
    ):
        with pytest.raises(NotCompiled, match=f"(it|this link) reads {said}, which the sample does not have"):
            bundle_of(template, sample=sample | lacking)
