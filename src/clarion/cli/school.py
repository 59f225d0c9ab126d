"""The demo's school: invented people, what they are to each other, who hears of what, and the first day. Values only.

Mail addresses are at example.com and phone numbers are of those set aside for fiction, so that nothing can reach
anybody even through a real provider. An address that starts with a word such as `unknown` makes the sandbox fail in
that way.
"""

from typing import Final
from uuid import UUID

from clarion.catalog.people import ContactEntry, GroupEntry, PersonEntry
from clarion.client import wire
from clarion.client.wire import Recipient, SendRequest
from clarion.domain.audience import Addressee
from clarion.domain.identity import Channel, Identity
from clarion.domain.person import LocalForm
from clarion.domain.setting import SettingChange
from clarion.domain.suppression import Change

TENANT: Final = "school"

CHILD: Final = wire.Entity(type="child", guid=UUID("0c11d000-0000-4000-8000-000000000001"))
"""Leo, whom the incident is about."""

INVOICE: Final = wire.Entity(type="invoice", guid=UUID("14701ce0-0000-4000-8000-000000000417"))

LOWER_SCHOOL: Final = UUID("b0170000-0000-4000-8000-000000000001")
UPPER_SCHOOL: Final = UUID("b0170000-0000-4000-8000-000000000002")

FAMILIES: Final = UUID("96009000-0000-4000-8000-000000000001")
STAFF: Final = UUID("96009000-0000-4000-8000-000000000002")


ZONE: Final = "Europe/Berlin"

FORM: Final = LocalForm(tz_id=ZONE)
"""The school's own: whoever has no zone reads times in this one, and without a language a notification's first."""

_GERMAN: Final = LocalForm(locale="de", tz_id=ZONE)
_GERMAN_PARENTS: Final = ("Jonas", "Emil", "Lena", "Paul", "Hugo")


def _parent(number: int, name: str) -> PersonEntry:
    form = _GERMAN if name in _GERMAN_PARENTS else LocalForm()
    return PersonEntry(
        identity=Identity.user(f"parent-{number}"),
        name=f"{name} Sample",
        locale=form.locale,
        tz_id=form.tz_id,
        contacts=(
            ContactEntry(channel=Channel.EMAIL, destination=f"{name.lower()}.sample@example.com"),
            ContactEntry(channel=Channel.SMS, destination=f"+1202555{100 + number:04}"),
        ),
    )


def _member(number: int, name: str) -> PersonEntry:
    return PersonEntry(
        identity=Identity.employee(UUID(f"57aff000-0000-4000-8000-{number:012}")),
        name=f"{name} Example",
        contacts=(ContactEntry(channel=Channel.EMAIL, destination=f"{name.lower()}.example@example.com"),),
    )


PARENTS: Final = tuple(
    _parent(number, name)
    for number, name in enumerate(
        ("Maya", "Jonas", "Nora", "Emil", "Lena", "Omar", "Ines", "Paul", "Zoe", "Ravi", "Elif", "Hugo"), start=1
    )
)

EMPLOYEES: Final = (
    _member(1, "Ada"),  # head of school
    _member(2, "Karl"),  # office
    _member(3, "Mina"),  # class 2b
    _member(4, "Tom"),  # kitchen
)

GROUPS: Final = (
    GroupEntry(guid=FAMILIES, name="All families", members=tuple(one.identity for one in PARENTS)),
    GroupEntry(guid=STAFF, name="Staff", members=tuple(one.identity for one in EMPLOYEES)),
)

UNITS: Final = {LOWER_SCHOOL: "Lower school", UPPER_SCHOOL: "Upper school"}

HOLDERS: Final = {
    ("head", None): EMPLOYEES[0].identity,
    ("office", None): EMPLOYEES[1].identity,
    ("class-teacher", LOWER_SCHOOL): EMPLOYEES[2].identity,
}
"""Who holds which role in which unit, or in the whole school."""

RELATIONS: Final = (
    (CHILD.type, CHILD.guid, "guardian", PARENTS[0].identity),
    (CHILD.type, CHILD.guid, "guardian", PARENTS[1].identity),
    (INVOICE.type, INVOICE.guid, "payer", PARENTS[4].identity),
)
"""What people are to things: Leo's parents, and who pays the invoice."""

SETTINGS: Final = {
    ("incident", None): SettingChange(recipients=(Addressee(relation="guardian"), Addressee(role="head"))),
    ("invoice-due", None): SettingChange(recipients=(Addressee(relation="payer"),)),
    ("invoice-due", UPPER_SCHOOL): SettingChange(enabled=False),  # the town sends those
}
"""Who hears of what where a send names nobody, and what a unit says otherwise."""

OPTED_OUT: Final = {PARENTS[11].identity: Change(category="news", channel=Channel.EMAIL, on=False)}
"""Hugo wants no newsletter."""

FIRST_DAY: Final = {
    "demo-welcome": SendRequest(type="welcome", to=(Recipient(user="parent-1"),), data={"name": "Maya"}),
    "demo-incident": SendRequest(
        type="incident",
        data={
            "child": {"name": "Leo", "group": "2b"},
            "summary": "Leo fell in the playground and bumped his knee. It was cooled, and he is back in class.",
            "happened_at": "2026-02-12T10:40:00+01:00",
            "action": "Please look at the knee this evening.",
        },
        entity=CHILD,
        business_unit=LOWER_SCHOOL,
    ),
    "demo-invoice": SendRequest(
        type="invoice-due",
        entity=INVOICE,
        business_unit=LOWER_SCHOOL,
        data={
            "invoice": {
                "number": "2026-0417",
                "total": "136.50",
                "currency": "EUR",
                "due": "2026-03-05",
                "items": [
                    {"name": "Mittagessen, Februar", "amount": "84.00"},
                    {"name": "Musikstunden, Februar", "amount": "52.50"},
                ],
            },
        },
    ),
    "demo-code": SendRequest(
        type="one-time-code",
        to=(Recipient(address="+12025550104"),),
        data={"code": "407 112"},
    ),
    "demo-newsletter": SendRequest(
        type="newsletter",
        to=(Recipient(group=FAMILIES),),
        data={
            "edition": "March 2026",
            "intro": "The days are getting longer, and the school garden wakes up.",
            "stories": [{"title": "Science fair on the 12th", "text": "Thirty-one projects. Doors open at 15:00."}],
        },
    ),
    # The sandbox takes this one and loses the reply, so the demo has a message that nobody is sure about.
    "demo-uncertain": SendRequest(
        type="welcome",
        to=(Recipient(address="unknown@example.com"),),
        data={"name": "Somebody"},
    ),
}
"""What is sent, by its idempotency key."""
