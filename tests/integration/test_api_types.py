"""Notification types over HTTP: publishing one as files are published, looking at it, and seeing how it reads."""

import zoneinfo
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from clarion.ports.catalog import Role
from tests.integration.api_harness import OTHER, ApiHarness, problem, seeded_api
from tests.unit.pipeline_line import TENANT

COLUMN = "<mj-section><mj-column>{% content %}</mj-column></mj-section>"
OUTING: dict[str, Any] = {
    "definition": {
        "key": "outing",
        "title": "Outing",
        "channels": ["email", "sms"],
        "locales": ["en", "de"],
        "layout": "school",
        "links": {"OUTING_LINK": "https://app.example/outings/{{ entity.guid }}"},
        "sample": {"place": "the museum", "recipient": {"name": "Maya"}, "entity": {"guid": "g/1"}},
    },
    "files": {
        "email.subject.liquid": "{% t where %}",
        "email.mjml.liquid": "<mj-text>{% t hello %}</mj-text>",
        "email.text.liquid": "{% t hello %} {{ OUTING_LINK }}",
        "email.text.de.liquid": "{% t hello %} Mehr: {{ OUTING_LINK }}",
        "sms.liquid": "{% t where %}",
    },
    "layouts": {"school.mjml.liquid": f"<mjml><mj-body>{COLUMN}</mj-body></mjml>"},
    "locales": {
        "en": {"where": "We go to {{ place }}", "hello": "Hello {{ recipient.name | default: 'families' }},"},
        "de": {"where": "Wir gehen: {{ place }}", "hello": "Hallo {{ recipient.name | default: 'Familien' }},"},
    },
}


def changed(**parts: Any) -> dict[str, Any]:
    """Give the outing with some of its parts changed; those of an object are merged."""
    return OUTING | {
        name: OUTING[name] | value if isinstance(value, dict) and name in OUTING else value
        for name, value in parts.items()
    }


@pytest.fixture
async def api() -> ApiHarness:
    return await seeded_api()


async def test_a_type_is_published_in_versions_and_shown(api: ApiHarness) -> None:
    async with api.client(Role.AUTHOR) as author:
        first = (await author.put("/v1/types/outing", json=OUTING)).json()
        again = (await author.put("/v1/types/outing", json=OUTING)).json()
        second = (await author.put("/v1/types/outing", json=changed(definition={"lane": "high"}))).json()
        shown = (await author.get("/v1/types/outing")).json()
    assert first == {"type": "outing", "version": 1, "created": True, "fields": [], "parts": [], "others": []}
    assert again == first | {"created": False}
    assert second == {
        "type": "outing",
        "version": 2,
        "created": True,
        "fields": [{"field": "lane", "before": "normal", "after": "high"}],
        "parts": [],
        "others": [],
    }
    assert (shown["version"], shown["enabled"], shown["definition"]["lane"]) == (2, True, "high")
    assert shown["variables"] == ["place"]
    assert [one["version"] for one in shown["versions"]] == [2, 1]
    audit = [entry.subject for entry in await api.memory.list_audit(TENANT, limit=100)]
    assert audit.count("template outing") == 2


async def test_a_dry_run_compares_and_stores_nothing(api: ApiHarness) -> None:
    async with api.client(Role.AUTHOR) as author:
        await author.put("/v1/types/outing", json=OUTING)
        body = changed(dry_run=True, locales={"de": OUTING["locales"]["de"] | {"where": "Wir fahren: {{ place }}"}})
        compared = (await author.put("/v1/types/outing", json=body)).json()
        shown = (await author.get("/v1/types/outing")).json()
    assert (compared["version"], compared["created"], compared["fields"]) == (2, True, [])
    assert compared["parts"] == [
        {
            "locale": "de",
            "channel": channel,
            "part": part,
            "lines": ["@@ -1 +1 @@", "-Wir gehen: {{ place }}", "+Wir fahren: {{ place }}"],
        }
        for channel, part in (("email", "subject"), ("sms", "text"))
    ]
    assert shown["version"] == 1


async def test_every_mistake_is_named_by_its_field_and_nothing_is_stored(api: ApiHarness) -> None:
    body = changed(
        definition={"ttl_seconds": 0},
        files={"sms.liquid": "{{ a | nope }}", "push.liquid": "x"},
        layouts={"school.text.liquid": "no content"},
        locales={"de": {"where": "{{ place"}},
    )
    async with api.client(Role.AUTHOR) as author:
        said = problem(await author.put("/v1/types/outing", json=body))
        missing = await author.get("/v1/types/outing")
    assert (said["status"], said["code"], said["field"]) == (422, "invalid-definition", "definition.ttl_seconds")
    assert [(one["field"], one["detail"].partition(":")[0]) for one in said["mistakes"]] == [
        ("definition.ttl_seconds", "it cannot be used"),
        ("layouts.school.text.liquid", "line 1"),
        ("locales.de", "there is no text 'hello', which email.mjml.liquid reads on line 1"),
        ("files.push.liquid", "the definition does not list the channel push"),
        ("files.sms.liquid", "line 1"),
        ("locales.de.where", "line 1"),
    ]
    assert missing.status_code == 404


@pytest.mark.parametrize(
    "body, field, says",
    [
        (
            changed(definition={"key": "other"}),
            "definition.key",
            "it is not the one that the path names",
        ),
        (changed(definition={"chanels": []}), "definition.chanels", "there is no such field"),
        (changed(definition={"channels": ["fax"]}), "definition.channels[0]", "'fax' is not one of its words"),
        (changed(files={"sms.liquid": 1}), "files.sms.liquid", "it is a whole number and must be text"),
        (changed(extra=1), "extra", "there is no such field"),
        ({"definition": OUTING["definition"]}, "files", "it is missing"),
    ],
)
async def test_a_body_that_is_no_type_is_refused(api: ApiHarness, body: Any, field: str, says: str) -> None:
    async with api.client(Role.AUTHOR) as author:
        said = problem(await author.put("/v1/types/outing", json=body))
    assert (said["status"], said["field"]) == (422, field)
    assert says in said["detail"]


async def test_what_no_folder_could_have_is_refused_here_too(api: ApiHarness) -> None:
    body = changed(
        layouts={"../school.mjml.liquid": "x"},
        locales={"de_DE": {}, "fr": {"a b": "x", "where": "{% if place %}"}},
    )
    async with api.client(Role.AUTHOR) as author:
        said = problem(await author.put("/v1/types/outing", json=body))
    assert {(one["field"], one["detail"].partition(":")[0]) for one in said["mistakes"]} == {
        ("layouts.../school.mjml.liquid", "no layout has such a name"),
        ("locales.de_DE", "no language has such a name"),
        ("locales.fr.a b", "it cannot be a name"),
        ("locales.fr.where", "it holds a tag, and texts hold only variables"),
    }


@pytest.mark.parametrize("role", [Role.VIEWER, Role.SENDER, Role.SUPPORT])
async def test_publishing_needs_its_own_grant(api: ApiHarness, role: Role) -> None:
    async with api.client(role) as client:
        assert problem(await client.put("/v1/types/outing", json=OUTING))["status"] == 403


async def test_a_type_of_another_tenant_is_not_shown_and_a_category_is_compared_with_ones_own(api: ApiHarness) -> None:
    async with api.client(Role.AUTHOR) as author, api.client(Role.AUTHOR, tenant_id=OTHER) as stranger:
        await author.put("/v1/types/outing", json=OUTING)
        assert (await stranger.get("/v1/types/outing")).status_code == 404
        assert (await stranger.post("/v1/types/outing/preview", json={})).status_code == 404
        news = changed(definition={"key": "news", "may_unsubscribe": True})
        said = problem(await author.put("/v1/types/news", json=news))
        assert said["field"] == "definition.may_unsubscribe"
        assert "and may not from" in said["detail"]


async def test_what_people_may_leave_is_changed_for_a_whole_category_at_once(api: ApiHarness) -> None:
    """Two types that must say the same could each not be the first; with their category both change together."""
    optional = {"definition": {"may_unsubscribe": True}}
    async with api.client(Role.AUTHOR) as author:
        for key in ("outing", "second"):
            await author.put(f"/v1/types/{key}", json=changed(definition={"key": key}))
        await author.put("/v1/types/apart", json=changed(definition={"key": "apart", "category": "apart"}))
        refused = problem(await author.put("/v1/types/outing", json=changed(**optional)))
        asked = changed(**optional, with_category=True)
        compared = (await author.put("/v1/types/outing", json=asked | {"dry_run": True})).json()
        before = (await author.get("/v1/types/second")).json()
        answered = (await author.put("/v1/types/outing", json=asked)).json()
        again = (await author.put("/v1/types/outing", json=asked)).json()
        shown = {key: (await author.get(f"/v1/types/{key}")).json() for key in ("outing", "second", "apart")}
    assert refused["field"] == "definition.may_unsubscribe"
    assert (before["version"], before["definition"]["may_unsubscribe"]) == (1, False)
    assert compared == answered
    change = {"field": "may_unsubscribe", "before": False, "after": True}
    others = [one for one in answered["others"] if one["type"] == "second"]
    assert others == [{"type": "second", "version": 2, "created": True, "fields": [change], "parts": [], "others": []}]
    assert (again["created"], again["others"]) == (False, [])
    assert {key: one["definition"]["may_unsubscribe"] for key, one in shown.items()} == {
        "outing": True,
        "second": True,
        "apart": False,
    }
    audit = [entry.subject for entry in await api.memory.list_audit(TENANT, limit=100)]
    assert audit.count("template second") == 2


# How it reads.


async def test_a_preview_shows_the_sample_in_the_language_that_is_wanted(api: ApiHarness) -> None:
    async with api.client(Role.AUTHOR) as author:
        await author.put("/v1/types/outing", json=OUTING)
        shown = (await author.post("/v1/types/outing/preview", json={"locale": "de-AT"})).json()
    assert (shown["type"], shown["version"], shown["locale"]) == ("outing", 1, "de")
    assert shown["contents"]["sms"] == {"text": "Wir gehen: the museum"}
    mail = shown["contents"]["email"]
    assert mail["subject"] == "Wir gehen: the museum"
    assert mail["text"] == "Hallo Maya, Mehr: https://app.example/outings/g%2F1"
    assert "Hallo Maya," in mail["html"]


async def test_a_preview_takes_data_and_one_channel_of_one_version(api: ApiHarness) -> None:
    async with api.client(Role.VIEWER) as viewer, api.client(Role.AUTHOR) as author:
        await author.put("/v1/types/outing", json=OUTING)
        await author.put("/v1/types/outing", json=changed(files={"sms.liquid": "Later: {{ place }}"}))
        asked = {"data": {"place": "<b>the zoo</b>"}, "channel": "sms", "version": 1}
        shown = (await viewer.post("/v1/types/outing/preview", json=asked)).json()
        latest = (await viewer.post("/v1/types/outing/preview", json=asked | {"version": None})).json()
        nobody = await viewer.post("/v1/types/outing/preview", json=asked | {"version": 9})
    assert shown["contents"] == {"sms": {"text": "We go to <b>the zoo</b>"}}
    assert (latest["version"], latest["contents"]) == (2, {"sms": {"text": "Later: <b>the zoo</b>"}})
    assert nobody.status_code == 404


@pytest.mark.parametrize(
    "asked, field, says",
    [
        ({"channel": "push"}, "channel", "is not sent by push: it is sent by email, sms"),
        ({"zone": "../../etc/passwd"}, "zone", "'../../etc/passwd' is no time zone: write its name, such as"),
        ({"zone": "Mars/Olympus"}, "zone", "'Mars/Olympus' is no time zone: write its name, such as"),
        ({"data": {}}, "data", "the notification type 'outing' needs place: add what is missing to data"),
        ({"data": []}, "data", "it is a list and must be an object or null"),
    ],
)
async def test_a_preview_that_cannot_be_made_says_why(
    api: ApiHarness, asked: Any, field: str | None, says: str
) -> None:
    async with api.client(Role.AUTHOR) as author:
        await author.put("/v1/types/outing", json=OUTING)
        said = problem(await author.post("/v1/types/outing/preview", json=asked))
    assert (said["status"], said.get("field")) == (422, field)
    assert says in said["detail"]


async def test_a_zone_that_only_this_host_has_is_refused_for_a_preview(api: ApiHarness, tmp_path: Path) -> None:
    """Templates are merged with the zones of a package; one that is not among them would be shown as UTC."""
    (tmp_path / "Ours").write_bytes(resources.files("tzdata.zoneinfo").joinpath("UTC").read_bytes())
    zoneinfo.reset_tzpath([tmp_path])
    try:
        assert zoneinfo.ZoneInfo("Ours").key == "Ours"
        async with api.client(Role.AUTHOR) as author:
            await author.put("/v1/types/outing", json=OUTING)
            said = problem(await author.post("/v1/types/outing/preview", json={"zone": "Ours"}))
            vienna = await author.post("/v1/types/outing/preview", json={"zone": "Europe/Vienna"})
    finally:
        zoneinfo.reset_tzpath()
    assert (said["status"], said["field"]) == (422, "zone")
    assert vienna.status_code == 200


async def test_a_quarantined_type_is_shown_as_such_and_its_preview_says_what_to_do(api: ApiHarness) -> None:
    """Its older version, which is not quarantined, can be seen as before."""
    async with api.client(Role.AUTHOR) as author:
        await author.put("/v1/types/outing", json=OUTING)
        await author.put("/v1/types/outing", json=changed(definition={"lane": "high"}))
        latest = (await author.get("/v1/types/outing")).json()["versions"][0]
        await author.post("/v1/types/outing/preview", json={})
        assert await api.memory.quarantine_template(TENANT, "outing", latest["content_hash"])
        shown = (await author.get("/v1/types/outing")).json()
        listed = {one["type"]: one["quarantined"] for one in (await author.get("/v1/types")).json()["items"]}
        refused = [problem(await author.post("/v1/types/outing/preview", json=one)) for one in ({}, {"version": 2})]
        older = (await author.post("/v1/types/outing/preview", json={"version": 1})).json()
        absent = [await author.post("/v1/types/outing/preview", json={"version": 3}), await author.get("/v1/types/no")]
    assert (shown["version"], shown["definition"]["lane"], shown["variables"]) == (2, "high", ["place"])
    assert [one["quarantined_at"] is not None for one in shown["versions"]] == [True, False]
    assert listed == {one: one == "outing" for one in listed}
    assert len(listed) > 1
    for said in refused:
        assert (said["status"], said["field"]) == (422, "type")
        assert said["detail"].startswith("version 2 of the notification type 'outing' is quarantined")
        assert "publish a corrected version, or resolve its support case" in said["detail"]
    assert older["version"] == 1
    assert [one.status_code for one in absent] == [404, 404]
