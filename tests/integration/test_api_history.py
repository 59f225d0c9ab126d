"""Everything that one person got, over HTTP: by whichever entity it was filed, with what came of it for them."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from clarion.catalog.people import GroupEntry, People, PersonEntry
from clarion.client import wire
from clarion.domain import recipient
from clarion.domain.call import Deferred, Refused
from clarion.domain.identity import Channel, Identity
from clarion.domain.notification import NotificationJob, NotificationScheduler
from clarion.ports.catalog import Role
from tests.integration.api_harness import ENTITY, OTHER, ApiHarness, problem, seeded_api
from tests.unit.pipeline_line import STAFF, TENANT, TRACE

SECOND = timedelta(seconds=1)
SAM, KIM = wire.Recipient(user="1"), wire.Recipient(user="2")
CHILD = wire.Entity(type="child", guid=ENTITY)


@pytest.fixture
async def api() -> ApiHarness:
    return await seeded_api()


async def got(api: ApiHarness, person: str = "user:1", query: str = "", role: Role = Role.VIEWER) -> dict[str, Any]:
    async with api.client(role) as client:
        answer = await client.get(f"/v1/entities/{person}/notifications{query}")
        assert answer.status_code == 200, answer.text
        page: dict[str, Any] = answer.json()
        return page


async def send(api: ApiHarness, *to: wire.Recipient, **changes: Any) -> str:
    """Send one and let a second pass; return its job."""
    first, *also = to
    sent = await api.line.send(to=first, also=tuple(also), **changes)
    api.clock.advance(SECOND)
    return str(sent.job_id)


async def test_a_person_finds_all_that_they_were_a_recipient_of(api: ApiHarness) -> None:
    """Filed under an entity, under a group, under the job itself or under the person."""
    jobs = [
        await send(api, SAM),
        await send(api, SAM, entity=CHILD),
        await send(api, wire.Recipient(group=STAFF)),
        await send(api, KIM, SAM),
    ]
    others = await send(api, KIM)
    await api.line.drain()
    items = (await got(api))["items"]
    assert [item["job_id"] for item in items] == jobs[::-1]
    assert [item["recipients"] for item in items] == [2, 2, 1, 1]
    assert [item["recipient"] for item in items] == [None, None, "user:1", "user:1"]
    assert [item["job_id"] for item in (await got(api, "user:2"))["items"]] == [others, jobs[3], jobs[2]]
    assert [item["job_id"] for item in (await got(api, str(ENTITY)))["items"]] == [jobs[1]], "as before"


async def test_what_came_of_it_is_told_for_that_person_alone(api: ApiHarness) -> None:
    """The mail of one is refused, and the other has no address: of the same notification."""
    api.line.provider.answers = [Refused(reason="no such mailbox")]
    job = await send(api, SAM, KIM, channels=(Channel.EMAIL,))
    await api.line.drain()
    async with api.client(Role.VIEWER) as client:
        assert (await client.get(f"/v1/notifications/{job}")).json()["result"] == "failed"
    (sams,) = (await got(api))["items"]
    (kims,) = (await got(api, "user:2"))["items"]
    assert (sams["job_id"], sams["result"], sams["skipped"]) == (job, "failed", [])
    assert (kims["job_id"], kims["result"]) == (job, "nobody")
    (skip,) = kims["skipped"]
    assert (skip["channel"], skip["rule"]) == ("email", "no_address")
    assert skip["reason"]
    assert sams["message_id"] != kims["message_id"]


async def test_the_message_of_a_line_leads_to_its_timeline(api: ApiHarness) -> None:
    await send(api, SAM, KIM)
    await api.line.drain()
    (item,) = (await got(api))["items"]
    async with api.client(Role.VIEWER) as client:
        timeline = (await client.get(f"/v1/messages/{item['message_id']}/timeline")).json()
    assert [one["recipient"] for one in timeline["recipients"]] == ["user:1"]


async def test_a_notification_is_found_before_its_recipients_are_decided_on(api: ApiHarness) -> None:
    """Where it names a single person and no entity, as it always was; then it waits."""
    job = await send(api, SAM)
    (item,) = (await got(api))["items"]
    assert (item["job_id"], item["result"], item["recipients"], item["skipped"]) == (job, "waiting", 1, [])
    await api.line.drain()
    (item,) = (await got(api))["items"]
    assert (item["job_id"], item["result"]) == (job, "sent")


async def test_results_of_a_person_are_those_of_their_own_messages(api: ApiHarness) -> None:
    inbox = await send(api, SAM, channels=(Channel.INBOX,))
    await api.line.drain()
    api.line.provider.answers = [Deferred(reason="busy")]
    waiting = await send(api, SAM, channels=(Channel.EMAIL,))
    await api.line.drain()
    async with api.client(Role.ADMIN) as client:
        await client.put("/v1/types/welcome/enabled", json={"enabled": False})
    off = await send(api, SAM)
    await api.line.drain()
    results = {item["job_id"]: item["result"] for item in (await got(api))["items"]}
    assert results == {inbox: "delivered", waiting: "waiting", off: "nobody"}


@pytest.mark.parametrize("limit", [1, 2, 3, 6])
async def test_pages_make_the_whole(api: ApiHarness, limit: int) -> None:
    jobs = [await send(api, SAM, **({"entity": CHILD} if n % 2 else {})) for n in range(4)]
    await api.line.drain()
    jobs += [await send(api, SAM) for _ in range(2)]  # nobody is decided on yet
    page = await got(api, query=f"?limit={limit}")
    listed = [item["job_id"] for item in page["items"]]
    while page["next_cursor"] is not None:
        page = await got(api, query=f"?limit={limit}&cursor={page['next_cursor']}")
        listed += [item["job_id"] for item in page["items"]]
    assert listed == jobs[::-1]


async def test_a_person_of_a_large_set_is_told_why_they_got_nothing(
    api: ApiHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their decision lies in a page of the set, in the blob store; one whose page is gone says nothing."""
    for module, name in (("whom", "INLINE_MAX"), ("pages", "PAGE_SIZE")):
        monkeypatch.setattr(f"clarion.pipeline.generate.{module}.{name}", 2)
    people = People(catalog=api.memory, dispatcher=api.line.dispatcher, keyring=api.line.keyring)
    members = [Identity.user(f"member {n}") for n in range(5)]
    await people.put(TENANT, [PersonEntry(identity=one, name="Sam") for one in members], trace=TRACE)
    group = UUID("6f1c2c7e-0000-4000-8000-0000000000bb")
    await people.put_group(TENANT, GroupEntry(guid=group, name="All", members=tuple(members)))
    job = await send(api, wire.Recipient(group=group), channels=(Channel.EMAIL,))
    await api.line.drain()
    (stored,) = await api.memory.rows(TENANT, NotificationJob)
    assert recipient.read(stored.recipients or "") == recipient.decode_manifest(stored.recipients or "")
    for one in members:
        (item,) = (await got(api, f"user:{one.id}"))["items"]
        assert (item["job_id"], item["result"], item["recipients"]) == (job, "nobody", 5)
        assert [skip["rule"] for skip in item["skipped"]] == ["no_address"]


async def test_two_tenants_have_a_user_of_the_same_id_and_histories_of_their_own(api: ApiHarness) -> None:
    await send(api, SAM)
    await api.line.drain()
    async with api.client(Role.ADMIN, tenant_id=OTHER) as stranger:
        assert (await stranger.get("/v1/entities/user:1/notifications")).json() == {"items": [], "next_cursor": None}


async def test_a_cursor_of_another_persons_history_is_refused(api: ApiHarness) -> None:
    for _ in range(2):
        await send(api, SAM)
    cursor = (await got(api, query="?limit=1"))["next_cursor"]
    async with api.client(Role.VIEWER) as client:
        for path in ("user:2", str(ENTITY), "employee:6f1c2c7e-0000-4000-8000-000000000001"):
            answer = await client.get(f"/v1/entities/{path}/notifications?cursor={cursor}")
            assert (answer.status_code, problem(answer)["field"]) == (422, "cursor")


async def test_a_set_that_cannot_be_read_stops_no_history(api: ApiHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    await send(api, KIM, channels=(Channel.EMAIL,))
    await api.line.drain()
    monkeypatch.setattr(recipient, "read", lambda _text: recipient.decode("{"))
    (item,) = (await got(api, "user:2"))["items"]
    assert (item["result"], item["skipped"]) == ("nobody", [])


async def test_a_notification_whose_pending_row_is_missing_waits_until_it_is_made_again(api: ApiHarness) -> None:
    """As in every list."""
    await send(api, SAM)
    (row,) = await api.memory.rows(TENANT, NotificationScheduler)
    await api.memory.remove(TENANT, row)
    (item,) = (await got(api))["items"]
    assert (item["result"], item["status"]) == ("waiting", None)


async def test_lists_of_other_things_have_none_of_a_persons_fields(api: ApiHarness) -> None:
    await send(api, SAM, entity=CHILD)
    await api.line.drain()
    async with api.client(Role.VIEWER) as client:
        for path in ("/v1/notifications", f"/v1/entities/{ENTITY}/notifications"):
            (item,) = (await client.get(path)).json()["items"]
            assert not {"message_id", "skipped"} & item.keys()
