"""Occurrences over HTTP: lists of them, one with all that is known, and what people do with one."""

from datetime import date, timedelta
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from clarion.client.wire_automation import Act
from clarion.domain import key
from clarion.domain.automation import AutomationScheduler, AutomationStatus, AutomationType
from clarion.domain.due import DispatchResult, DueOutcome, Named, skipped
from clarion.domain.planning import EndReason
from clarion.ports.catalog import Role
from clarion.testing.factories import automation_scheduler, guid
from tests.integration.api_harness import OTHER, ApiHarness, problem, seeded_api
from tests.unit.pipeline_line import TENANT

HOUR = timedelta(hours=1)
JOB = guid(7, "job")
ODD = ("INV/2026:17", "100 %", "%41", "a?b#c&d=e", "Müller 日", "+1", "..", "x~y.z-_")
"""Ids of sources whose keys hold everything that a path could take for something else."""
REASON = {"reason": "accounting corrects it"}


@pytest.fixture
async def api() -> ApiHarness:
    return await seeded_api()


def odd(source: str, **fields: object) -> AutomationScheduler:
    """Make an occurrence of a source with this id."""
    what: dict[str, Any] = {
        "setting": str(guid(1, "setting")),
        "source_type": "invoice",
        "source": source,
        "trigger_key": "due",
        "target_date": date(2026, 3, 31),
        "offset_days": 7,
    }
    return automation_scheduler(scheduler_key=key.date_reminder_key(**what), **what, **fields)


async def store(api: ApiHarness, *rows: AutomationScheduler, tenant_id: str = TENANT) -> None:
    for one in await api.memory.ensure_automation_schedulers(tenant_id, rows):
        (row,) = [row for row in rows if row.key == one.record.key]
        if row.end_reason is not None:  # which only a plan or a worker writes
            await api.memory.overwrite(tenant_id, msgspec.structs.replace(one.record, end_reason=row.end_reason))


def path(row: AutomationScheduler) -> str:
    return f"/v1/automation/{quote(row.scheduler_key, safe=':')}"


async def test_each_list_has_what_stands_like_that(api: ApiHarness) -> None:
    now = api.clock.now()
    rows = {
        "waiting": automation_scheduler(1, scheduled_at=now + HOUR),
        "due": automation_scheduler(2, scheduled_at=now - HOUR),
        "held": automation_scheduler(3, scheduled_at=now, on_support_hold=True, failure_reason="no answer"),
        "failed": automation_scheduler(4, scheduled_at=now, status=AutomationStatus.FAILED, retry_count=1),
        "processing": automation_scheduler(
            5, scheduled_at=now, status=AutomationStatus.PROCESSING, lease_until=now + HOUR
        ),
        "ended": automation_scheduler(6, scheduled_at=now, status=AutomationStatus.DEACTIVATED),
    }
    await store(api, *rows.values())
    async with api.client(Role.VIEWER) as viewer:
        listed = {name: (await viewer.get(f"/v1/automation?standing={name}")).json()["items"] for name in rows}
        unasked = (await viewer.get("/v1/automation")).json()["items"]
        unknown = await viewer.get("/v1/automation?standing=late")
    assert {name: [one["key"] for one in found] for name, found in listed.items()} == {
        name: [row.scheduler_key] for name, row in rows.items()
    }
    assert unasked == listed["waiting"]
    assert (listed["held"][0]["on_hold"], listed["held"][0]["failure"]) == (True, "no answer")
    assert (unknown.status_code, problem(unknown)["field"]) == (422, "standing")
    assert "choose from waiting, due" in problem(unknown)["detail"]


async def test_a_list_is_in_the_order_of_time_page_by_page_and_can_be_narrowed(api: ApiHarness) -> None:
    now = api.clock.now()
    rows = [automation_scheduler(n, scheduled_at=now + HOUR * (n % 3 + 1)) for n in range(1, 7)]
    report = automation_scheduler(9, automation_type=AutomationType.REPORT_SUBSCRIPTION, scheduled_at=now + HOUR * 9)
    await store(api, *rows, report)
    await store(api, automation_scheduler(1, scheduled_at=now + HOUR), tenant_id=OTHER)
    async with api.client(Role.VIEWER) as viewer:
        found: list[dict[str, Any]] = []
        query = "?limit=2"
        while query:
            page = (await viewer.get(f"/v1/automation{query}")).json()
            found += page["items"]
            query = page["next_cursor"] and f"?limit=2&cursor={page['next_cursor']}"
        reports = (await viewer.get("/v1/automation?type=ReportSubscription")).json()["items"]
        until = quote((now + HOUR * 2).isoformat())
        soon = (await viewer.get(f"/v1/automation?until_at={until}")).json()["items"]
        first = (await viewer.get("/v1/automation?limit=1")).json()["next_cursor"]
        strange = await viewer.get(f"/v1/automation?standing=held&cursor={first}")
    in_time = sorted(rows, key=lambda row: (row.scheduled_at, row.scheduler_key))  # as they were made
    assert [one["key"] for one in found] == [row.scheduler_key for row in (*in_time, report)]
    assert [one["key"] for one in reports] == [report.scheduler_key]
    assert [one["key"] for one in soon] == [row.scheduler_key for row in in_time[:4]]
    assert (strange.status_code, problem(strange)["field"]) == (422, "cursor")


@pytest.mark.parametrize("source", ODD)
async def test_a_key_of_any_source_fits_into_a_path(api: ApiHarness, source: str) -> None:
    row = odd(source, scheduled_at=api.clock.now() + HOUR)
    others = [odd(one, scheduled_at=api.clock.now() + HOUR) for one in ODD if one != source]
    await store(api, row, *others)
    async with api.client(Role.SUPPORT) as support:
        shown = await support.get(path(row))
        held = await support.post(f"{path(row)}/hold", json=REASON)
        listed = (await support.get("/v1/automation?standing=held")).json()["items"]
    assert (shown.status_code, shown.json()["key"], shown.json()["source"]) == (200, row.scheduler_key, source)
    assert held.status_code == 200, held.text
    assert [one["source"] for one in listed] == [source]


async def test_one_is_shown_with_its_local_time_and_what_it_led_to(api: ApiHarness) -> None:
    result = DispatchResult(
        outcome=DueOutcome.HANDED_OVER, job=JOB, template_version=3, named=2, named_by=Named.SETTING, inbox_only=True
    )
    row = automation_scheduler(
        status=AutomationStatus.COMPLETED, dispatch_result=result.text, retry_count=2, failure_reason="no answer"
    )
    await store(api, row)
    async with api.client(Role.VIEWER) as viewer:
        shown = (await viewer.get(path(row))).json()
    assert (shown["due_at"], shown["local_date"], shown["local_time"], shown["zone"]) == (
        "2026-01-29T08:00:00Z",
        "2026-01-29",
        "09:00",
        "Europe/Berlin",
    )
    assert (shown["outcome"], shown["job_id"], shown["timeline"]) == (
        "HandedOver",
        str(JOB),
        f"/v1/messages/{JOB}/timeline",
    )
    assert (shown["retry_count"], shown["failure"], shown["reason"]) == (2, "no answer", None)
    assert (shown["template_version"], shown["named"], shown["named_by"], shown["inbox_only"]) == (
        3,
        2,
        "setting",
        True,
    )
    assert (shown["target_date"], shown["offset_days"], shown["metric"]) == ("2026-02-01", -3, None)
    assert shown["entity"] == row.primary_entity


@pytest.mark.parametrize("reason", EndReason)
async def test_the_reason_for_which_nobody_was_told_is_shown(api: ApiHarness, reason: EndReason) -> None:
    skips = automation_scheduler(1, status=AutomationStatus.COMPLETED, dispatch_result=skipped(reason).text)
    ended = automation_scheduler(2, status=AutomationStatus.DEACTIVATED, end_reason=reason.value)
    await store(api, skips, ended)
    async with api.client(Role.VIEWER) as viewer:
        for row, outcome in ((skips, "Skipped"), (ended, None)):
            shown = (await viewer.get(path(row))).json()
            assert (shown["reason"], shown["outcome"], shown["job_id"]) == (reason.value, outcome, None)


async def test_what_a_newer_program_wrote_is_shown_as_far_as_it_is_understood(api: ApiHarness) -> None:
    row = automation_scheduler(
        status=AutomationStatus.COMPLETED, dispatch_result='{"outcome": "Posted"}', end_reason="MoonIsFull"
    )
    await store(api, row)
    async with api.client(Role.VIEWER) as viewer:
        shown = await viewer.get(path(row))
    assert (shown.status_code, shown.json()["reason"], shown.json()["job_id"]) == (200, None, None)


async def test_an_occurrence_is_held_released_run_and_deactivated_each_with_its_reason(api: ApiHarness) -> None:
    row = odd("INV/2026:17", scheduled_at=api.clock.now() + HOUR)
    await store(api, row)
    async with api.client(Role.SUPPORT) as support:
        held = (await support.post(f"{path(row)}/hold", json=REASON)).json()
        released = (await support.post(f"{path(row)}/release", json=REASON)).json()
        ran = (await support.post(f"{path(row)}/run", json=REASON)).json()
        ended = (await support.post(f"{path(row)}/deactivate", json=REASON)).json()
        assert ended == (await support.get(path(row))).json()
        audited = (await support.get("/v1/audit")).json()["items"]
    assert [one["on_hold"] for one in (held, released, ran, ended)] == [True, False, False, False]
    assert api.wake_ups == ["due"] * 2, "what is released and what runs may be due now"
    assert ran["due_at"] == ran["run_now_at"] != ran["planned_at"]
    assert (ended["status"], ended["canceled_by"], ended["reason"]) == ("Canceled", "person", "DeactivatedByHand")
    mine = [one for one in audited if row.scheduler_key in one["subject"]]
    assert {(one["actor"], one["reason"]) for one in mine} == {("support of school", REASON["reason"])}
    assert sorted(one["act"] for one in mine) == ["deactivate", "hold", "release", "run now"]


@pytest.mark.parametrize(
    "act, row, says",
    [
        (Act.HOLD, automation_scheduler(on_support_hold=True), "it is on hold"),
        (Act.HOLD, automation_scheduler(status=AutomationStatus.COMPLETED), "it was handed over"),
        (Act.RELEASE, automation_scheduler(), "it waits"),
        (Act.RUN, automation_scheduler(status=AutomationStatus.FAILED), "it failed for good"),
        (Act.DEACTIVATE, automation_scheduler(status=AutomationStatus.DEACTIVATED), "it was deactivated"),
    ],
)
async def test_what_does_not_fit_is_a_conflict_and_is_not_audited(
    api: ApiHarness, act: Act, row: AutomationScheduler, says: str
) -> None:
    await store(api, row)
    async with api.client(Role.ADMIN) as admin:
        refused = await admin.post(f"{path(row)}/{act}", json=REASON)
    assert (refused.status_code, problem(refused)["code"]) == (409, "conflict")
    assert says in problem(refused)["detail"]
    assert not [one for one in await api.memory.list_audit(TENANT, limit=100) if row.scheduler_key in one.subject]


async def test_a_completed_one_runs_again_once_for_each_number(api: ApiHarness) -> None:
    row = odd("INV/2026:17", status=AutomationStatus.COMPLETED)
    waits = odd("INV/18", scheduled_at=api.clock.now() + HOUR)
    await store(api, row, waits)
    async with api.client(Role.SUPPORT) as support:
        assert (await support.get(path(row))).json()["next_rerun"] == 1
        first = await support.post(f"{path(row)}/rerun", json=REASON | {"number": 1})
        again = await support.post(f"{path(row)}/rerun", json=REASON | {"number": 1})
        early = await support.post(f"{path(row)}/rerun", json=REASON | {"number": 2})
        pending = await support.post(f"{path(waits)}/rerun", json=REASON | {"number": 1})
        unnumbered = await support.post(f"{path(row)}/rerun", json=REASON)
        shown = (await support.get(path(row))).json()
    assert (first.status_code, first.json()["key"]) == (200, f"{row.scheduler_key}:retry:1")
    assert (first.json()["status"], first.json()["due_at"]) == ("Pending", again.json()["due_at"])
    assert [one.status_code for one in (again, early, pending, unnumbered)] == [200, 409, 409, 422]
    assert (shown["status"], shown["next_rerun"]) == ("Completed", 2)
    assert api.wake_ups == ["due"]


async def test_an_act_needs_a_reason_and_a_word_that_means_something(api: ApiHarness) -> None:
    row = automation_scheduler()
    await store(api, row)
    async with api.client(Role.ADMIN) as admin:
        for body, field in (({}, "reason"), ({"reason": " "}, "reason"), (REASON | {"force": True}, "force")):
            refused = await admin.post(f"{path(row)}/hold", json=body)
            assert (refused.status_code, problem(refused)["field"]) == (422, field)
        unknown = await admin.post(f"{path(row)}/stop", json=REASON)
        assert (unknown.status_code, problem(unknown)["field"]) == (404, "act")
        assert "hold, release, run, deactivate" in problem(unknown)["detail"]
        assert (await admin.get(path(row))).json()["version"] == 1


async def test_another_tenants_key_is_one_that_nobody_has(api: ApiHarness) -> None:
    row = odd("INV/2026:17", scheduled_at=api.clock.now() + HOUR)
    await store(api, row)
    async with api.client(Role.ADMIN, tenant_id=OTHER) as stranger:
        answers = [await stranger.get(path(row))]
        answers += [await stranger.post(f"{path(row)}/{act}", json=REASON) for act in Act]
        answers.append(await stranger.post(f"{path(row)}/rerun", json=REASON | {"number": 1}))
        answers.append(await stranger.get(f"/v1/automation/{'x' * 600}"))
        assert (await stranger.get("/v1/automation")).json()["items"] == []
    assert {(one.status_code, problem(one)["code"]) for one in answers} == {(404, "not-found")}
    kept = await api.memory.find_occurrence(TENANT, row.scheduler_key)
    assert kept is not None
    assert msgspec.structs.replace(kept, id=None) == row


@pytest.mark.parametrize("role", [Role.VIEWER, Role.SENDER, Role.AUTHOR, Role.INBOX])
async def test_who_may_only_look_may_not_act(api: ApiHarness, role: Role) -> None:
    row = automation_scheduler()
    await store(api, row)
    async with api.client(role) as client:
        assert (await client.get(path(row))).status_code == 200
        refused = await client.post(f"{path(row)}/hold", json=REASON)
    assert (refused.status_code, problem(refused)["code"]) == (403, "forbidden")
