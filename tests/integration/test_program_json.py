"""`--json` prints what the API answers to the same question, byte by byte: both doors on the same store."""

import asyncio
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec
import pytest
import typer
from typer.testing import CliRunner

from clarion.bootstrap import open_platform, prepare
from clarion.cli.access import grant
from clarion.cli.program import program
from clarion.cli.session import open_session
from clarion.domain.attempt import AttemptStatus
from clarion.domain.automation import AutomationStatus
from clarion.domain.outgoing import OutgoingStatus
from clarion.ports.catalog import Role
from clarion.testing.factories import automation_scheduler
from tests.integration.both_doors import answered, invoked, printed, said, settings_of, work

ROOT = Path(__file__).parents[2]
CHILD = "6f1c2c7e-0000-4000-8000-000000000001"
UNIT = "6f1c2c7e-0000-4000-8000-0000000000b1"
GROUP, INNER = (f"6f1c2c7e-000{n}-4000-8000-000000000001" for n in (1, 2))
REMINDER = "6f1c2c7e-0000-4000-8000-0000000000c1"
OCCURRENCE = f"reminder:{REMINDER}:order:INV%2F17%20%C3%A4:due:2026-03-31:7"
REPORT = "6f1c2c7e-0000-4000-8000-0000000000d1"
RULE = "FREQ=WEEKLY;BYDAY=MO;BYHOUR=8"
SEND = "send welcome --data {data}"

ASKED = (
    ("explain {job}", "/v1/messages/{job}/timeline"),
    ("explain {message}", "/v1/messages/{message}/timeline"),
    ("explain {failed}", "/v1/messages/{failed}/timeline"),
    ("explain {job} --recipients --limit 1", "/v1/notifications/{job}/recipients?limit=1"),
    ("history {child}", "/v1/entities/{child}/notifications"),
    ("history child:{child} --limit 1", "/v1/entities/{child}/notifications?limit=1"),
    ("history sam@example.com", "/v1/entities/address:sam@example.com/notifications"),
    ("history {child} --story", "/v1/entities/{child}/story"),
    ("upcoming", "/v1/automation/upcoming"),
    ("upcoming --days 7 --limit 2", "/v1/automation/upcoming?days=7&limit=2"),
    ("history user:nobody", "/v1/entities/user:nobody/notifications"),
    ("inbox user:1", "/v1/inbox/user:1"),
    ("inbox user:1 --limit 1", "/v1/inbox/user:1?limit=1"),
    ("inbox user:1 --category account --unread", "/v1/inbox/user:1?category=account&unread=true"),
    ("inbox user:1 --archived", "/v1/inbox/user:1?archived=true"),
    ("inbox user:nobody", "/v1/inbox/user:nobody"),
    ("list", "/v1/notifications"),
    ("list --limit 3 --type welcome", "/v1/notifications?limit=3&type=welcome"),
    ("list --result failed", "/v1/notifications?result=failed"),
    ("list --since 2026-01-01T00:00:00Z", "/v1/notifications?since_at=2026-01-01T00:00:00Z"),
    ("list --until 2026-01-01T00:00:00+01:00", "/v1/notifications?until_at=2026-01-01T00:00:00%2B01:00"),
    ("audit", "/v1/audit"),
    ("audit --limit 2", "/v1/audit?limit=2"),
    ("audit list", "/v1/audit"),
    ("types", "/v1/types"),
    ("types list", "/v1/types"),
    ("settings", "/v1/settings"),
    ("settings list", "/v1/settings"),
    ("settings list --limit 1", "/v1/settings?limit=1"),
    ("settings show welcome", "/v1/settings/welcome"),
    ("settings show welcome --business-unit {unit}", "/v1/settings/welcome?business_unit={unit}"),
    ("reminders list", "/v1/reminders"),
    ("reminders show {reminder}", "/v1/reminders/{reminder}"),
    ("automation list", "/v1/automation"),
    ("automation list held --limit 1", "/v1/automation?standing=held&limit=1"),
    ("automation list due --type Reminder", "/v1/automation?standing=due&type=Reminder"),
    ("automation show {occurrence}", "/v1/automation/{in_path}"),
    ("reports kinds", "/v1/reports"),
    ("reports list", "/v1/report-subscriptions"),
    ("reports show {report}", "/v1/report-subscriptions/{report}"),
    ("people list", "/v1/people"),
    ("people list --limit 1", "/v1/people?limit=1"),
    ("people show user:1", "/v1/people/user:1"),
    ("people attributes list", "/v1/attributes"),
    ("groups list", "/v1/groups"),
    ("groups list --limit 1", "/v1/groups?limit=1"),
    ("groups show {group}", "/v1/groups/{group}"),
    ("groups members {group}", "/v1/groups/{group}/members"),
    ("units list", "/v1/units"),
    ("units show {unit}", "/v1/units/{unit}"),
    ("units members {unit}", "/v1/units/{unit}/members"),
    ("roles list", "/v1/roles"),
    ("roles holders teacher", "/v1/roles/teacher/holders"),
    ("roles holders teacher --business-unit {unit}", "/v1/roles/teacher/holders?business_unit={unit}"),
    ("relations list child:{child}", "/v1/relations?entity=child:{child}"),
    ("relations list user:1", "/v1/relations?person=user:1"),
    ("sources list invoice", "/v1/sources/invoice"),
    ("sources list invoice --limit 1", "/v1/sources/invoice?limit=1"),
    ("sources show invoice 2026/17", "/v1/sources/invoice/2026%2F17"),
    ("events list", "/v1/events"),
    (
        "events list --entity child:{child} --status Failed --limit 1",
        "/v1/events?entity=child:{child}&status=Failed&limit=1",
    ),
    ("events show {event}", "/v1/events/{event}"),
    ("event-mappings list", "/v1/event-mappings"),
    ("suppress list", "/v1/suppressions"),
    ("suppress list user:1 --cause manual", "/v1/suppressions?recipient=user:1&cause=manual"),
    ("suppress preferences user:1", "/v1/people/user:1/preferences"),
    ("uncertain list", "/v1/uncertain"),
    ("uncertain list --limit 1", "/v1/uncertain?limit=1"),
    ("support list", "/v1/support-cases"),
    ("support list --all --limit 1", "/v1/support-cases?limit=1&status=All"),
    ("support show {case}", "/v1/support-cases/{case}"),
)
AGED = (("status", "/v1/status"),)
"""Ages pass between two questions, so these are compared without them."""
DONE = (
    (f"{SEND} --to sam@example.com --key known", "/v1/notifications"),
    ("cancel {waiting}", "/v1/notifications/{waiting}/cancel"),
    ("explain --would welcome --user parent-1 --channel inbox --entity child:{child}", "/v1/explain"),
    ("events retry {event} --reason r", "/v1/events/{event}/retry"),
    ("event-mappings set member.left --nothing", "PUT /v1/event-mappings/member.left"),
    ("uncertain retry {outgoing} --version {version} --reason r", "/v1/outgoing/{outgoing}/retry"),
    ("support retry {failed} --reason r", "/v1/notifications/{failed}/retry"),
    ("support resolve {case} -m done", "/v1/support-cases/{case}/resolve"),
    ("settings set welcome --off --to role:head --channels email --business-unit {unit}", "PUT {welcome_of_unit}"),
    ("settings clear welcome --business-unit {unit}", "DELETE {welcome_of_unit}"),
    ("reminders put {reminder} --name n --source-type order --type welcome --date due", "PUT /v1/reminders/{reminder}"),
    ("reminders off {reminder}", "PUT /v1/reminders/{reminder}/active"),
    ("reminders on {reminder}", "PUT /v1/reminders/{reminder}/active"),
    ("automation hold {occurrence} --reason r", "/v1/automation/{in_path}/hold"),
    ("automation release {held} --reason r", "/v1/automation/{held}/release"),
    ("automation run {occurrence} --reason r", "/v1/automation/{in_path}/run"),
    ("automation deactivate {occurrence} --reason r", "/v1/automation/{in_path}/deactivate"),
    ("automation rerun {over} --number 1 --reason r", "/v1/automation/{over}/rerun"),
    (
        f"reports put {{report}} --report delivery-summary --name n --rule {RULE} --zone UTC --type welcome",
        "PUT /v1/report-subscriptions/{report}",
    ),
    ("reports run {report} --run {report}", "PUT /v1/report-subscriptions/{report}/runs/{report}"),
    ("reports off {report}", "PUT /v1/report-subscriptions/{report}/active"),
    ("reports on {report}", "PUT /v1/report-subscriptions/{report}/active"),
)
BODIES: dict[str, Any] = {
    "send": {"type": "welcome", "to": [{"address": "sam@example.com"}], "data": {"name": "Sam"}},
    "cancel": None,
    "explain": {
        "type": "welcome",
        "recipient": {"user": "parent-1"},
        "channels": ["inbox"],
        "entity": {"type": "child", "guid": CHILD},
    },
    "uncertain retry": {"reason": "r"},
    "support retry": {"reason": "r"},
    "support resolve": {"resolution": "done"},
    "events retry": {"reason": "r"},
    "event-mappings set": {"notification_type": None},
    "settings set": {"enabled": False, "recipients": [{"role": "head"}], "channels": ["email"]},
    "settings clear": None,
    "reminders put": {
        "name": "n",
        "source_type": "order",
        "notification_type": "welcome",
        "rule": {"on": "date", "field": "due"},
    },
    "reminders off": {"active": False},
    "reminders on": {"active": True},
    **{f"automation {act}": {"reason": "r"} for act in ("hold", "release", "run", "deactivate")},
    "automation rerun": {"number": 1, "reason": "r"},
    "reports put": {
        "name": "n",
        "report": "delivery-summary",
        "rule": RULE,
        "time_zone": "UTC",
        "notification_type": "welcome",
    },
    "reports run": None,
    "reports off": {"active": False},
    "reports on": {"active": True},
}
CHANGED_BY = ("changed_at", "changed_by")
OWN = {
    "support resolve": ("resolved_at", "resolved_by"),
    "settings set": CHANGED_BY,
    "event-mappings set": CHANGED_BY,
    "reminders put": CHANGED_BY,
    "reminders off": CHANGED_BY,
    "reminders on": CHANGED_BY,
    "automation hold": ("failure",),  # which says who did it
    "automation run": ("due_at", "run_now_at"),
    "automation rerun": ("due_at", "planned_at", "local_date"),
    "reports put": CHANGED_BY,
    "reports off": CHANGED_BY,
    "reports on": CHANGED_BY,
}
"""What an act says of who did it and when."""


class Change(NamedTuple):
    """A change by both doors."""

    line: str
    method: str
    path: str
    body: dict[str, Any]


CHANGED = (
    Change(
        "people put user:9 --name Ann --contact ann@example.com --contact sms:0664123456 --region AT "
        "--attribute grade=7",
        "PUT",
        "/v1/people/user:9",
        {
            "name": "Ann",
            "contacts": {"email": [{"destination": "ann@example.com"}], "sms": [{"destination": "0664123456"}]},
            "region": "AT",
            "attributes": {"grade": 7},
        },
    ),
    Change(
        "people set user:1 --profile title=Dr. --locale '' --add-contact push:abc --remove-contact email:a@example.com",
        "PATCH",
        "/v1/people/user:1",
        {
            "profile": {"title": "Dr."},
            "locale": None,
            "add_contacts": {"push": [{"destination": "abc"}]},
            "remove_contacts": {"email": [{"destination": "a@example.com"}]},
        },
    ),
    Change(
        "sources put invoice 2026/17 --field payer=Sam --number total=120.5 --truth paid=true --date due_on=2026-12-01 "
        "--metric open=0 --metric seats:north=3 --business-unit {unit} --entity {child}",
        "PUT",
        "/v1/sources/invoice/2026%2F17",
        {
            "fields": {"payer": "Sam", "total": 120.5, "paid": True},
            "dates": {"due_on": "2026-12-01"},
            "metrics": {"open": 0, "seats": {"north": 3}},
            "business_unit": UNIT,
            "entity": CHILD,
        },
    ),
    Change(
        "event member.joined --id {inner} --entity child:{child} --data {data} --at 2026-01-01T08:00:00Z",
        "POST",
        "/v1/events",
        {
            "type": "member.joined",
            "id": INNER,
            "entity": {"type": "child", "guid": CHILD},
            "data": {"name": "Sam"},
            "occurred_at": "2026-01-01T08:00:00Z",
        },
    ),
    Change("sources remove invoice 18", "DELETE", "/v1/sources/invoice/18", {}),
    Change("people attributes declare since date", "PUT", "/v1/attributes/since", {"kind": "date"}),
    Change(
        "groups put {group} --name Two --group {inner}", "PUT", "/v1/groups/{group}", {"name": "Two", "groups": [INNER]}
    ),
    Change(
        "suppress add user:1 sam@example.com --category news --reason r",
        "POST",
        "/v1/suppressions",
        {
            "items": [{"recipient": one, "category": "news"} for one in ("user:1", "sam@example.com")],
            "reason": "r",
        },
    ),
    Change("groups set {group} --name Three", "PATCH", "/v1/groups/{group}", {"name": "Three"}),
    Change("groups set {group} --group ''", "PATCH", "/v1/groups/{group}", {"groups": []}),
    Change(
        "groups change {group} --add user:7 --remove user:1",
        "PATCH",
        "/v1/groups/{group}/members",
        {"add": ["user:7"], "remove": ["user:1"]},
    ),
    Change("units put {unit} --name West --locale fr", "PUT", "/v1/units/{unit}", {"name": "West", "locale": "fr"}),
    Change("units set {unit} --name West --zone UTC", "PATCH", "/v1/units/{unit}", {"name": "West", "zone": "UTC"}),
    Change("units set {unit} --locale ''", "PATCH", "/v1/units/{unit}", {"locale": None}),
    Change("units change {unit} --add user:7", "PATCH", "/v1/units/{unit}/members", {"add": ["user:7"]}),
    Change("roles change teacher --add user:7", "PATCH", "/v1/roles/teacher/holders", {"add": ["user:7"]}),
    Change(
        "relations change child:{child} payer --add user:7",
        "PATCH",
        "/v1/relations",
        {"add": [{"entity": {"type": "child", "guid": CHILD}, "relation": "payer", "person": "user:7"}]},
    ),
)
"""Changes of who belongs together: command, method, path, body."""
WITHOUT_TWIN = {
    *("demo", "outbox", "publish", "migrate", "check", "serve", "work", "tenants list", "tenants create"),
    "suppress lift",  # the API answers it without a body
    *("people import", "groups import", "relations import", "sources import"),  # files, which the API does not take
    *("tenants set", "groups remove", "people remove", "event-mappings remove"),
    *("clock show", "clock set", "audit verify"),
    *("keys create", "keys list", "keys revoke", "quota list", "quota set"),
    "preview",  # in the shape of the API too: tests/integration/test_program_files.py
    "rehearse",  # holds a copy of a tenant in memory, which is not for an API that many ask
    *("types enable", "types disable"),  # the API answers them without a body
}


async def fall_due(home: Path) -> None:
    """Have occurrences that wait, one of them on hold, and one that is over."""
    async with open_platform(settings_of(home)) as platform:
        at = await platform.store.now() + timedelta(days=9)
        rows = [automation_scheduler(n, scheduled_at=at, on_support_hold=n == 1) for n in (1, 2)]
        odd = automation_scheduler(3, scheduler_key=OCCURRENCE, source="INV/17 ä", scheduled_at=at)
        over = automation_scheduler(4, status=AutomationStatus.COMPLETED)
        await platform.store.ensure_automation_schedulers("school", [*rows, odd, over])


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A school with a notification in every state that a question is about, and the ids of each."""
    home = tmp_path_factory.mktemp("model") / "home"

    async def make() -> None:
        await prepare(settings_of(home))
        async with open_platform(settings_of(home)) as platform:
            await platform.dispatcher.ensure_tenant("school", actor="test")
            api = await open_session(platform, tenant="school")
            (home / "key").write_text((await grant(api, actor="test", role=Role.ADMIN)).token)

    async def drain() -> None:
        async with open_platform(settings_of(home)) as platform:
            await work(platform, calls=4)

    asyncio.run(make())
    said(home, f"publish {ROOT}/src/clarion/cli/definitions/welcome")
    said(home, f"units put {UNIT} --name North")
    said(home, "settings set welcome --to role:teacher --to relation:guardian --channels inbox,email")
    said(home, f"settings set welcome --to unit --business-unit {UNIT}")
    said(home, f"{SEND} --to kim@example.com --entity child:{CHILD}")
    sent = said(home, f"{SEND} --to sam@example.com --entity child:{CHILD}")
    for name in ("unknown", "unknown+2"):
        said(home, f"{SEND} --to {name}@example.com")
    failed = said(home, f"{SEND} --to damaged@example.com")
    with closing(sqlite3.connect(home / "clarion.db", isolation_level=None)) as connection:
        connection.execute("UPDATE notification_job SET payload = x'00' WHERE guid = ?", (failed["job_id"],))
    asyncio.run(drain())
    asyncio.run(fall_due(home))
    said(home, f"reminders put {REMINDER} --name one --source-type order --type welcome --date due --offset 3")
    weekly = f"--name weekly --report delivery-summary --rule {RULE} --zone Europe/Vienna --type welcome"
    said(home, f"reports put {REPORT} {weekly} --user user:1")
    said(home, "people attributes declare grade number")
    for number in (1, 2):
        said(home, f"people put user:{number} --name P{number} --locale de --contact p{number}@example.com")
    for group in (INNER, GROUP):
        said(home, f"groups put {group} --name one")
    said(home, f"groups set {GROUP} --group {INNER}")
    said(home, f"groups change {GROUP} --add user:1 --add employee:{CHILD}")
    said(home, f"units change {UNIT} --add user:1")
    said(home, "roles change teacher --add user:1")
    said(home, f"sources put invoice 2026/17 --date due_on=2026-11-01 --entity {CHILD}")
    said(home, "event-mappings set member.joined welcome")
    event = said(home, f"event member.joined --key joined --entity child:{CHILD} --data {{data}}")
    with closing(sqlite3.connect(home / "clarion.db", isolation_level=None)) as connection:
        connection.execute(
            "UPDATE entity_event SET status = 'Failed', due_at = NULL WHERE event_type = 'member.joined'"
        )
    said(home, "sources put invoice 18 --metric open=1")
    said(home, f"roles change teacher --business-unit {UNIT} --add user:2")
    said(home, f"relations change child:{CHILD} guardian --add user:1 --add user:2")
    said(home, f"relations change child:{CHILD} payer --add user:1")
    waiting = said(home, f"{SEND} --to sam@example.com --key known")
    assert invoked(home, f"{SEND} --to kim@example.com --key known").exit_code != 0
    uncertain = said(home, "uncertain list")["items"]
    cases = {case["kind"]: case["case_id"] for case in said(home, "support list")["items"]}
    assert (len(uncertain), set(cases)) == (2, {"Conflict", "Failed"})
    return home, {
        "job": sent["job_id"],
        "message": sent["message_id"],
        "child": CHILD,
        "failed": failed["job_id"],
        "waiting": waiting["job_id"],
        "outgoing": str(uncertain[0]["id"]),
        "version": str(uncertain[0]["version"]),
        "case": cases["Conflict"],
        "event": event["event_id"],
        "unit": UNIT,
        "welcome_of_unit": f"/v1/settings/welcome?business_unit={UNIT}",
        "group": GROUP,
        "inner": INNER,
        "reminder": REMINDER,
        "occurrence": OCCURRENCE,
        "in_path": quote(OCCURRENCE, safe=":"),
        "held": automation_scheduler(1).scheduler_key,
        "over": automation_scheduler(4).scheduler_key,
        "report": REPORT,
    }


@pytest.mark.parametrize("line, path", ASKED, ids=[line for line, _ in ASKED])
def test_a_question_has_one_answer(model: tuple[Path, dict[str, str]], line: str, path: str) -> None:
    home, ids = model
    assert printed(home, line, **ids) == answered(home, "GET", path.format(**ids))


@pytest.mark.parametrize("line, path", AGED, ids=[line for line, _ in AGED])
def test_a_question_about_the_moment_has_one_answer(model: tuple[Path, dict[str, str]], line: str, path: str) -> None:
    home, ids = model
    one, other = said(home, line, **ids), msgspec.json.decode(answered(home, "GET", path))
    for answer in (one, other):
        for name in [name for name in answer if name == "at" or name.endswith("_seconds")]:
            del answer[name]
    assert one == other
    assert (one["workers"], one["messages_waiting"], one["uncertain"]) == ([], 0, 2), "the workers stopped properly"


@pytest.mark.parametrize("line, path", DONE, ids=[line for line, _ in DONE])
def test_an_act_has_one_answer(model: tuple[Path, dict[str, str]], tmp_path: Path, line: str, path: str) -> None:
    """Each door does it on a copy of the same store; who did it and when is all that may differ."""
    home, ids = model
    (body,) = [body for name, body in BODIES.items() if line.startswith(f"{name} ")]
    if body is not None and "outgoing" in line:
        body = body | {"version": int(ids["version"])}
    by_program = printed(shutil.copytree(home, tmp_path / "program"), line, **ids)
    method, _, path = path.rpartition(" ")
    by_api = answered(
        shutil.copytree(home, tmp_path / "api"),
        method or "POST",
        path.format(**ids),
        json=body,
        headers={"idempotency-key": "known"},
    )
    one, other = msgspec.json.decode(by_program), msgspec.json.decode(by_api)
    own = OWN.get(" ".join(line.split()[:2]), ())
    assert all(answer.pop(name) for name in own for answer in (one, other))
    assert list(one) == list(other)
    assert one == other
    assert own or by_program == by_api


@pytest.mark.parametrize("change", CHANGED, ids=[change.line for change in CHANGED])
def test_a_change_has_one_answer(model: tuple[Path, dict[str, str]], tmp_path: Path, change: Change) -> None:
    """Each door does it on a copy of the same store."""
    home, ids = model
    line, method, path, body = change
    by_program = printed(shutil.copytree(home, tmp_path / "program"), line, **ids)
    by_api = answered(shutil.copytree(home, tmp_path / "api"), method, path.format(**ids), json=body)
    assert by_program == by_api


@pytest.mark.parametrize(
    "line, path",
    [
        ("groups list", "/v1/groups"),
        ("roles list", "/v1/roles"),
        ("relations list user:1", "/v1/relations?person=user:1"),
        ("audit", "/v1/audit"),
        ("uncertain list", "/v1/uncertain"),
        ("support list", "/v1/support-cases"),
        ("history {child}", "/v1/entities/{child}/notifications"),
        ("list", "/v1/notifications"),
        ("settings list", "/v1/settings"),
        ("automation list", "/v1/automation"),
    ],
)
def test_a_page_of_one_door_goes_on_at_the_other(model: tuple[Path, dict[str, str]], line: str, path: str) -> None:
    home, ids = model
    first = said(home, f"{line} --limit 1", **ids)
    cursor = first["next_cursor"]
    second = printed(home, f"{line} --limit 1 --after {cursor}", **ids)
    joint = "&" if "?" in path else "?"
    assert second == answered(home, "GET", f"{path}{joint}limit=1&cursor={cursor}".format(**ids))
    assert msgspec.json.decode(second)["items"] != first["items"]


def test_what_a_person_reads_of_a_message_has_no_name_of_a_state(model: tuple[Path, dict[str, str]]) -> None:
    """Those are for programs, which get them with --json."""
    home, ids = model
    told = CliRunner().invoke(program, ["explain", ids["job"]], env={"CLARION_HOME": str(home)}).stdout
    assert "email: sent\n" in told
    assert not [name for name in (*OutgoingStatus, *AttemptStatus) if name in told], told
    assert [one["status"] for one in said(home, f"explain {ids['job']}")["messages"]] == ["SentToProvider"]


def test_every_command_that_the_api_has_too_is_compared() -> None:
    compared = [*(line for line, _ in (*ASKED, *AGED, *DONE)), *(change.line for change in CHANGED)]
    without = {
        name
        for name in commands(typer.main.get_command(program), "")
        if not any(line.startswith(f"{name} ") or line == name for line in compared)
    }
    assert without == WITHOUT_TWIN


def commands(command: Any, name: str) -> Iterator[str]:
    """Name every command that takes `--json`."""
    if any("--json" in parameter.opts for parameter in command.params):
        yield name
    for inner in command.list_commands(None) if hasattr(command, "list_commands") else ():
        yield from commands(command.get_command(None, inner), f"{name} {inner}".strip())
