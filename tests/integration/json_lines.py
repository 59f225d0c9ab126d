"""What the program and the API are both asked, line by line: commands with their paths, and what has no twin.

The braces stand for what the stores of `test_program_json` hold.
"""

from typing import Any, NamedTuple

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
