"""From a request to the exact records: what is stored of a send when it was made and called, field by field.

The requests stand in `tests/golden/records/requests.json`, what is stored of each in a file of its name beside it.
Sealed values are replaced by what they open to, and fields without a value are left out. A changed line is a changed
record: an honest retry of an older program's send may become a conflict by it, or a key another one.
`python tests/unit/test_record_golden.py` writes the files anew; read what changed before it is committed.
"""

import asyncio
import json
import re
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import msgspec
import pytest

from clarion.adapters.renderers import open_renderer
from clarion.catalog.people import ContactEntry, GroupEntry, People, PersonEntry
from clarion.catalog.publish import compile_folder
from clarion.client.wire import SendRequest
from clarion.domain.address import AddressVersion
from clarion.domain.definition import Definition
from clarion.domain.guard import IdempotencyGuard
from clarion.domain.identity import Channel, Identity, Lane
from clarion.domain.inbox import UserMessage
from clarion.domain.notification import NotificationJob, NotificationScheduler
from clarion.domain.outgoing import OutgoingMessage, UncertainPolicy
from clarion.domain.person import BusinessUnit, PersonVersion
from clarion.domain.recipient import RecipientJob
from clarion.domain.seal import TenantKeys
from clarion.ports.catalog import NewTemplate
from clarion.sealing.place import inbox_place, open_destination, open_profile, payload_place
from clarion.testing.clock import ManualClock
from clarion.testing.row import DeliveryAttempt, QueueEntry, Transition
from clarion.testing.store import SqliteInMemory
from tests.unit.pipeline_line import STAFF, TENANT, TRACE, Line, Scripted

GOLDEN: Final = Path(__file__).parents[1] / "golden"
RECORDS: Final = GOLDEN / "records"
PAYLOAD: dict[str, Any] = json.loads((GOLDEN / "notifications" / "payload.json").read_text(encoding="utf-8"))
REQUESTS: dict[str, dict[str, Any]] = json.loads((RECORDS / "requests.json").read_text(encoding="utf-8"))

CODE: Final = Definition(
    key="code",
    title="Code",
    category="security",
    channels=(Channel.SMS,),
    lane=Lane.CRITICAL,
    ttl_seconds=300,
    uncertain_policy=UncertainPolicy.PREFER_DUPLICATE,
)
UNIT: Final = UUID("6f1c2c7e-0000-4000-8000-0000000000bb")

KINDS: Final[tuple[type[msgspec.Struct], ...]] = (
    *(NotificationJob, NotificationScheduler, IdempotencyGuard, RecipientJob, AddressVersion, PersonVersion),
    *(UserMessage, OutgoingMessage, QueueEntry, Transition, DeliveryAttempt),
)


async def stored_of(name: str) -> dict[str, Any]:
    """Make one send in a school of its own, and give all that is stored of it and what was called."""
    request, clock = REQUESTS[name], ManualClock()
    line = Line(SqliteInMemory(clock), clock, Scripted(), public_url=PAYLOAD["public_url"])
    await line.dispatcher.ensure_tenant(TENANT)
    renderer = open_renderer()
    bundles = [
        *compile_folder(GOLDEN / "notifications", renderer),
        renderer.compile(CODE, {"sms.liquid": "Your code is {{ code }}"}),
    ]
    rows = [
        NewTemplate(
            template_key=one.definition.key, content_hash=one.content_hash, bundle=msgspec.json.encode(one).decode()
        )
        for one in bundles
    ]
    await line.store.publish_templates(TENANT, rows, actor="test")
    unit = BusinessUnit(guid=UNIT, name="Linden Park", locale="de", tz_id="Europe/Vienna")
    await line.store.put_business_unit(TENANT, unit)
    await seed_people(line)
    body = msgspec.convert({"data": PAYLOAD["data"], **request["body"]}, SendRequest)
    await line.accept(body, key=request["key"])
    await line.wait(3600)
    keys = await line.keyring.get(TENANT)
    stored = {kind.__name__: [written(keys, row) for row in await line.store.rows(TENANT, kind)] for kind in KINDS}
    calls = [given(plain(call)) for call in line.provider.calls]
    return {**{kind: rows for kind, rows in stored.items() if rows}, "calls": calls}


async def seed_people(line: Line) -> None:
    mail = ContactEntry(channel=Channel.EMAIL, destination="maya@example.com")
    phone = ContactEntry(channel=Channel.SMS, destination="+447700900002")
    people = People(catalog=line.store, dispatcher=line.dispatcher, keyring=line.keyring)
    entries = [
        PersonEntry(
            identity=Identity.user("1"), name="Maya <Brandt>", contacts=(mail, phone), profile={"guid": "7f9c"}
        ),
        PersonEntry(
            identity=Identity.user("2"), name="Kim", locale="en-GB", tz_id="Europe/London", profile={"guid": "2"}
        ),
    ]
    await people.put(TENANT, entries, trace=TRACE)
    members = tuple(one.identity for one in entries)
    await people.put_group(TENANT, GroupEntry(guid=STAFF, name="Staff", members=members))


def written(keys: TenantKeys, row: msgspec.Struct) -> dict[str, Any]:
    """Write a row as JSON, with what is sealed in it opened."""
    opened: dict[str, Any] = {}
    match row:
        case NotificationJob(payload=bytes(sealed)):
            opened = {"payload": json.loads(payload_place(row.guid).open(keys, sealed))}
        case UserMessage(content=bytes(sealed)):
            place = inbox_place(partition_key=row.partition_key, row_key=row.row_key)
            opened = {"content": json.loads(place.open(keys, sealed))}
        case AddressVersion():
            destination = open_destination(
                keys,
                row.ciphertext,
                recipient_id_hash=row.recipient_id_hash,
                channel=row.channel,
                key_hash=row.key_hash,
                serial=row.serial,
            )
            opened = {"ciphertext": destination}
        case PersonVersion():
            names = {"recipient_id_hash": row.recipient_id_hash, "profile_hash": row.profile_hash}
            opened = {"profile": open_profile(keys, row.profile, **names)}
        case _:
            pass
    found = plain(msgspec.structs.asdict(row) | opened)
    if isinstance(row, NotificationJob) and row.recipients is not None:
        found["recipients"] = json.loads(row.recipients)
    return {name: value for name, value in found.items() if value is not None}


def given(call: dict[str, Any]) -> dict[str, Any]:
    """Leave the HTML out of a call: `tests/golden/contents` has it, and its hash is in the rows."""
    call["content"].pop("html", None)
    return {name: value for name, value in call.items() if value is not None}


def plain(value: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(msgspec.json.encode(value))
    return found


def file_of(name: str) -> Path:
    return RECORDS / f"{re.sub('[^a-z]+', '-', name)}.json"


@pytest.mark.parametrize("name", REQUESTS)
async def test_a_request_leads_to_exactly_these_records(name: str) -> None:
    assert await stored_of(name) == json.loads(file_of(name).read_text(encoding="utf-8"))


def test_every_request_has_its_file_and_every_file_its_request() -> None:
    assert set(RECORDS.glob("*.json")) == {RECORDS / "requests.json", *map(file_of, REQUESTS)}


if __name__ == "__main__":
    for one in REQUESTS:
        text = json.dumps(asyncio.run(stored_of(one)), indent=1, ensure_ascii=False)
        file_of(one).write_text(f"{text}\n", encoding="utf-8")
