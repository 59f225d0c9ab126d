"""What the demo's school is reminded of: its certificates, invoices, classes and staff, and when whom. Values only.

Days are counted from the moment of the first start, in the school's zone, and reminders are sent at the time of day
that it was then. So at whatever hour somebody starts the demo, the same things fall due: some at once, one two minutes
later, and others in the days to come.
"""

from datetime import date, datetime, timedelta
from typing import Final
from uuid import UUID

from clarion.cli import school
from clarion.client.wire_reminders import ReminderRequest
from clarion.client.wire_reports import SubscriptionRequest
from clarion.client.wire_sources import SourceItem
from clarion.domain.audience import Addressee
from clarion.domain.key import FiringPolicy
from clarion.domain.local_time import to_local
from clarion.domain.reminder import Condition, DateRule, ThresholdRule, on_day_of

SOON: Final = timedelta(minutes=2)
"""Until the reminder that a visitor can see coming: long enough to find it in `clarion upcoming`."""

HEAD: Final = Addressee(role="head")
OWNER: Final = Addressee(relation="owner")

TITLES: Final = {"first-aid": "First aid certificate", "vetting": "Police vetting"}

EVENTS: Final = {"employee.joined": "welcome", "invoice.paid": None}
"""What events of the school's application lead to at once."""


def _thing(number: int) -> UUID:
    return UUID(f"50c4e000-0000-4000-8000-{number:012}")


TOMS_CERTIFICATE: Final = _thing(1)
KARLS_CERTIFICATE: Final = _thing(2)
INVOICE_SOON: Final = _thing(3)
INVOICE_LATE: Final = _thing(4)
INVOICE_LATER: Final = _thing(5)
MINAS_VETTING: Final = _thing(6)

RELATIONS: Final = (
    ("certificate", TOMS_CERTIFICATE, "owner", school.EMPLOYEES[3].identity),
    ("certificate", KARLS_CERTIFICATE, "owner", school.EMPLOYEES[1].identity),
    ("certificate", MINAS_VETTING, "owner", school.EMPLOYEES[2].identity),
    ("invoice", INVOICE_SOON, "payer", school.PARENTS[4].identity),
    ("invoice", INVOICE_LATE, "payer", school.PARENTS[4].identity),
    ("invoice", INVOICE_LATER, "payer", school.PARENTS[4].identity),
)
"""Whose certificate it is, and who pays: that is looked up when a reminder is due."""


def sources(now: datetime) -> dict[str, tuple[SourceItem, ...]]:
    """Give what the school knows of its things, by their type."""
    today, soon = (to_local(at, school.ZONE).date() for at in (now, now + SOON))
    return {
        "certificate": (
            _certificate("first-aid", "tom", "Tom Example", today + timedelta(days=30), TOMS_CERTIFICATE),
            _certificate("first-aid", "karl", "Karl Example", today + timedelta(days=42), KARLS_CERTIFICATE),
            _certificate("vetting", "mina", "Mina Example", today + timedelta(days=35), MINAS_VETTING),
            # Nobody wrote down whose this is, and the mail needs it: its reminder waits for a person, on hold.
            _certificate("vetting", "coach", None, today + timedelta(days=28)),
        ),
        "invoice": (
            _invoice("2026-0418", 84.0, today + timedelta(days=7), entity=INVOICE_SOON),
            _invoice("2026-0399", 52.5, today - timedelta(days=3), entity=INVOICE_LATE),
            _invoice("2026-0420", 148.5, today + timedelta(days=12), entity=INVOICE_LATER),
            _invoice("2026-0401", 84.0, today + timedelta(days=7), state="paid"),  # nobody is reminded of this one
        ),
        "class": (
            SourceItem(id="1a", fields={"name": "1a", "places": 25}, metrics={"booked": 23}),
            SourceItem(id="2b", fields={"name": "2b", "places": 25}, metrics={"booked": 19}),
        ),
        # Eight years before a 29 February there was one too.
        "employee": (_employee("mina", "Mina Example", on_day_of(soon, soon.year - 8)),),
    }


def reminders(now: datetime) -> dict[UUID, ReminderRequest]:
    """Give the school's reminder settings, by their guids."""
    at, soon = (f"{to_local(one, school.ZONE):%H:%M}" for one in (now, now + SOON))
    return {
        _setting(1): ReminderRequest(
            name="First aid certificate expires",
            source_type="certificate",
            conditions=(Condition(field="kind", values=("first-aid",)),),
            rule=DateRule(field="expires", offsets=(60, 30, 0)),
            send_time=at,
            notification_type="certificate-expires",
            recipients=(OWNER, HEAD),
        ),
        _setting(2): ReminderRequest(
            name="Police vetting expires",
            source_type="certificate",
            conditions=(Condition(field="kind", values=("vetting",)),),
            rule=DateRule(field="expires", offsets=(28, 0)),
            send_time=at,
            notification_type="certificate-expires",
            recipients=(OWNER, HEAD),
        ),
        _setting(3): ReminderRequest(
            name="Invoice is due or overdue",
            source_type="invoice",
            conditions=(Condition(field="state", values=("open",)),),
            rule=DateRule(field="due", offsets=(7, -3)),
            send_time=at,
            notification_type="invoice-reminder",
            recipients=(Addressee(relation="payer"),),
        ),
        _setting(4): ReminderRequest(
            name="Class is nearly full",
            source_type="class",
            rule=ThresholdRule(metric="booked", value=22, policy=FiringPolicy.FALSE_TO_TRUE),
            notification_type="class-nearly-full",
            recipients=(Addressee(role="office"),),
        ),
        _setting(5): ReminderRequest(
            name="Work anniversary",
            source_type="employee",
            rule=DateRule(field="since", yearly=True),
            send_time=soon,
            notification_type="work-anniversary",
            recipients=(HEAD,),
            inbox_only=True,
        ),
    }


def reports(now: datetime) -> dict[UUID, SubscriptionRequest]:
    """Give what the head of school reads on Monday mornings, from the first one that is not in the next hours."""
    starts_at = now.replace(minute=0, second=0, microsecond=0) + timedelta(days=1)
    return {
        UUID("4e004700-0000-4000-8000-000000000001"): SubscriptionRequest(
            name="Deliveries of the week",
            report="delivery-summary",
            rule="FREQ=WEEKLY;BYDAY=MO;BYHOUR=7;BYMINUTE=0;BYSECOND=0",
            time_zone=school.ZONE,
            starts_at=starts_at,
            notification_type="weekly-report",
            recipients=(HEAD,),
        )
    }


def _setting(number: int) -> UUID:
    return UUID(f"5e771000-0000-4000-8000-{number:012}")


def _certificate(kind: str, whose: str, holder: str | None, expires: date, entity: UUID | None = None) -> SourceItem:
    name, fields = f"{kind}-{whose}", {"kind": kind, "title": TITLES[kind], "holder": holder}
    return SourceItem(id=name, fields=fields, dates={"expires": expires.isoformat()}, entity=entity)


def _invoice(number: str, total: float, due: date, *, state: str = "open", entity: UUID | None = None) -> SourceItem:
    fields = {"number": number, "total": total, "currency": "EUR", "state": state}
    return SourceItem(id=number, fields=fields, dates={"due": due.isoformat()}, entity=entity)


def _employee(name: str, called: str, since: date) -> SourceItem:
    return SourceItem(id=name, fields={"name": called}, dates={"since": since.isoformat()})
