"""Examples of what is asked and answered about people, which stand in the description and are held to the shapes."""

from typing import Final

from clarion.client import wire_people
from clarion.domain.attribute import Kind
from clarion.domain.identity import Channel

_MAIL: Final = wire_people.Contact(destination="sam@example.com")
_TOKEN: Final = wire_people.Contact(destination="fcm-token-of-a-phone")

PERSON: Final = wire_people.Person(
    person="user:parent-17",
    name="Sam Sample",
    profile={"title": "Dr."},
    locale="de-AT",
    zone="Europe/Vienna",
    contacts=(
        wire_people.KnownContact(channel=Channel.EMAIL, destination="sam@example.com", verified=True, retired_at=None),
        wire_people.KnownContact(
            channel=Channel.PUSH, destination="fcm-token-of-a-phone", verified=True, retired_at=None
        ),
    ),
    attributes={"grade": 7},
)
PERSON_PAGE: Final = wire_people.PersonPage(items=(PERSON,), next_cursor=None)
PERSON_REQUEST: Final = wire_people.PersonRequest(
    name="Sam Sample",
    profile={"title": "Dr."},
    locale="de-AT",
    zone="Europe/Vienna",
    contacts={Channel.EMAIL: (_MAIL,), Channel.PUSH: (_TOKEN,)},
    attributes={"grade": 7},
)
PEOPLE_REQUEST: Final = wire_people.PeopleRequest(
    people=(
        wire_people.PersonItem(person="user:parent-17", name="Sam Sample", contacts={Channel.EMAIL: (_MAIL,)}),
        wire_people.PersonItem(
            person="user:parent-18",
            name="Kim Sample",
            contacts={Channel.SMS: (wire_people.Contact(destination="0664 1234567", verified=False),)},
        ),
    ),
    region="AT",
)
PEOPLE_STORED: Final = wire_people.PeopleStored(stored=2)
PERSON_CHANGE: Final = wire_people.PersonChange(
    profile={"title": None}, locale="de-CH", add_contacts={Channel.PUSH: (_TOKEN,)}, attributes={"grade": 8}
)
ATTRIBUTE: Final = wire_people.Attribute(name="grade", kind=Kind.NUMBER)
ATTRIBUTE_LIST: Final = wire_people.AttributeList(items=(ATTRIBUTE,))
ATTRIBUTE_REQUEST: Final = wire_people.AttributeRequest(kind=Kind.NUMBER)
