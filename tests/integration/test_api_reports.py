"""Report subscriptions over HTTP, and reports by link: what is shown, what is refused, and what a link gives away."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from clarion.dispatch.request import ContentRequest, ReportContent, Trace
from clarion.dispatch.request import Occurrence as Due
from clarion.domain import messaging_content, report_link
from clarion.domain.automation import AutomationScheduler, TriggerType
from clarion.domain.entity_event import HistoryKind
from clarion.domain.messaging_content import WrittenReport
from clarion.domain.occurrence import ReportRun
from clarion.domain.report_choice import ReportForm
from clarion.ports.catalog import Role
from tests.integration.api_harness import OTHER, ApiHarness, problem
from tests.unit.pipeline_line import STAFF, TENANT

GUID = UUID("6f1c2c7e-0000-4000-8000-0000000000d1")
RUN = UUID("6f1c2c7e-0000-4000-8000-0000000000d2")
ONE = f"/v1/report-subscriptions/{GUID}"
URL = "https://clarion.example.com"
SUBSCRIPTION: dict[str, Any] = {
    "name": "Weekly",
    "report": "delivery-summary",
    "parameters": {"type": "welcome"},
    "rule": "FREQ=WEEKLY;BYDAY=MO;BYHOUR=8",
    "time_zone": "Europe/Vienna",
    "starts_at": "2026-01-01T00:00:00Z",
    "ends_at": None,
    "missed": "skip",
    "form": "csv",
    "delivery": "link",
    "notification_type": "welcome",
    "to": ["user:1", f"group:{STAFF}"],
    "recipients": [{"role": "bursar"}],
    "business_unit": None,
    "active": True,
}


@pytest.fixture
async def api() -> ApiHarness:
    api = ApiHarness(public_url=URL)
    await api.seed()
    return api


async def test_a_subscription_is_put_as_a_whole_shown_listed_and_switched(api: ApiHarness) -> None:
    async with api.client(Role.ADMIN) as admin, api.client(Role.ADMIN, tenant_id=OTHER) as stranger:
        put = await admin.put(ONE, json=SUBSCRIPTION)
        again = await admin.put(ONE, json=SUBSCRIPTION)
        listed = (await admin.get("/v1/report-subscriptions")).json()["items"]
        off = (await admin.put(f"{ONE}/active", json={"active": False})).json()
        assert (await stranger.get(ONE)).status_code == 404
        assert (await stranger.get("/v1/report-subscriptions")).json()["items"] == []
        kinds = (await admin.get("/v1/reports")).json()["items"]
    assert put.status_code == 200, put.text
    shown = put.json()
    assert shown == again.json()
    assert {name: shown[name] for name in SUBSCRIPTION} == SUBSCRIPTION
    assert (shown["next_at"], shown["version"]) == ("2026-01-19T07:00:00Z", 1)
    assert listed == [{name: value for name, value in shown.items() if name != "warnings"}]
    assert (off["active"], off["next_at"], off["version"]) == (False, None, 2)
    assert [one["report"] for one in kinds] == ["delivery-summary"]
    acts = [one.act for one in await api.memory.list_audit(TENANT, limit=50) if one.subject.startswith("report sub")]
    assert acts == ["set", "set"]


@pytest.mark.parametrize(
    "change, field, says",
    [
        ({"time_zone": "Mars/Olympus"}, "time_zone", "zone"),
        ({"rule": "0 8 30 2 *"}, "rule", "it is never due"),
        ({"rule": "* * * * *"}, "rule", "is not one minute"),
        ({"rule": "FREQ=DAILY;UNTIL=20200101"}, "rule", "it is never due"),
        ({"report": "sales"}, "report", "there is delivery-summary"),
        ({"parameters": {"colour": "red"}}, "parameters.colour", "it takes type"),
        ({"notification_type": "welcom"}, "notification_type", "did you mean welcome?"),
        ({"to": ["sam@example.com"]}, "to[0]", "it names nobody"),
        ({"to": ["user:1", "group:7"]}, "to[1]", "it names no group"),
        ({"recipients": [{}]}, "recipients[0]", "exactly one of"),
        ({"form": "pdf"}, "form", "html"),
        ({"ends_at": "2025-01-01T00:00:00Z"}, "ends_at", "later end"),
        ({"business_unit": str(RUN)}, "business_unit", "no such business unit"),
    ],
)
async def test_what_could_not_be_kept_is_named_and_nothing_is_stored(
    api: ApiHarness, change: dict[str, Any], field: str, says: str
) -> None:
    async with api.client(Role.ADMIN) as admin:
        answer = await admin.put(ONE, json=SUBSCRIPTION | change)
        assert (answer.status_code, problem(answer)["field"]) == (422, field), answer.text
        assert says in problem(answer)["detail"]
        assert (await admin.get("/v1/report-subscriptions")).json()["items"] == []


async def test_a_run_by_hand_is_made_once_for_its_guid(api: ApiHarness) -> None:
    async with api.client(Role.ADMIN) as admin:
        assert (await admin.put(f"{ONE}/runs/{RUN}")).status_code == 404
        await admin.put(ONE, json=SUBSCRIPTION)
        runs = [(await admin.put(f"{ONE}/runs/{RUN}")).json() for _ in range(2)]
        await admin.put(f"{ONE}/active", json={"active": False})
        assert (await admin.put(f"{ONE}/runs/{RUN}")).status_code == 409
    assert [one["created"] for one in runs] == [True, False]
    assert api.wake_ups == ["settings", "due", "settings"]
    (row,) = await api.memory.rows(TENANT, AutomationScheduler)
    assert (row.scheduler_key, row.trigger_type) == (runs[0]["occurrence"], TriggerType.MANUAL_RUN)
    (line,) = await api.memory.list_history(TENANT, GUID, limit=9)
    assert (line.kind, line.subject) == (HistoryKind.PLANNED, row.scheduler_key)
    assert line.text.startswith("run by ")


async def written(api: ApiHarness, form: ReportForm) -> str:
    """Store a report, and return the token of its link."""
    now = api.clock.now()
    report = WrittenReport(
        name="Weekly",
        report="delivery-summary",
        notification_type="welcome",
        template_version=1,
        start_at=now,
        end_at=now,
        form=form,
        lines=1,
        output="<script>alert(1)</script>",
        written_at=now,
    )
    due = Due(
        what=ReportRun(subscription=GUID, manual_run=RUN, notification_type="welcome"),
        scheduled_at=now,
        trace=Trace(correlation_id="c"),
    )
    content = ContentRequest(
        of=ReportContent(occurrence=due),
        content=messaging_content.encode(report),
        source_at=now,
        trace=Trace(correlation_id="c"),
    )
    (answer,) = await api.line.dispatcher.ensure_messaging_job(TENANT, [content])
    keys = await api.line.keyring.get(TENANT)
    return report_link.make_token(keys, answer.record.guid, until=now + timedelta(days=1))


@pytest.mark.parametrize(
    "form, media_type", [(ReportForm.HTML, "text/html; charset=utf-8"), (ReportForm.CSV, "text/csv; charset=utf-8")]
)
async def test_a_link_opens_its_report_in_a_sandbox_without_a_login(
    api: ApiHarness, form: ReportForm, media_type: str
) -> None:
    token = await written(api, form)
    async with api.client(None) as guest:
        answer = await guest.get(f"/r/{token}")
        seen = await guest.head(f"/r/{token}")
    assert (answer.status_code, answer.text) == (200, "<script>alert(1)</script>")
    assert answer.headers["content-type"] == media_type
    assert answer.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    assert (answer.headers["cache-control"], answer.headers["x-content-type-options"]) == (
        "private, no-store",
        "nosniff",
    )
    assert ("attachment" in answer.headers.get("content-disposition", "")) is (form is ReportForm.CSV)
    assert seen.status_code == 200


async def test_a_link_that_does_not_hold_says_no_more_than_it_must(api: ApiHarness) -> None:
    token = await written(api, ReportForm.HTML)
    await api.line.dispatcher.ensure_tenant(OTHER)
    theirs = report_link.make_token(await api.line.keyring.get(OTHER), RUN, until=api.clock.now() + timedelta(days=1))
    moved = theirs[:20] + token[20:]
    async with api.client(None) as guest:
        forged = {
            (one.status_code, one.text)
            for one in [
                await guest.get(f"/r/{bad}") for bad in (token[:-4] + "AAAA", token[:30], "a", "A" * 501, moved)
            ]
        }
        unwritten = await guest.get(f"/r/{theirs}")
        api.clock.advance(timedelta(days=1))
        ended = await guest.get(f"/r/{token}")
    ((status, text),) = forged
    assert (status, "this is no link of ours" in text) == (404, True)
    assert (ended.status_code, ended.text.startswith("this link has ended")) == (410, True)
    assert unwritten.status_code == 410
