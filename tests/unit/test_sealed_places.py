"""Where private values are sealed, and with which keys and nonces: looked at in what is stored.

A value opens only at the place it was sealed for, each with a nonce of its own (X-20); the index by which a destination
is found is made with a key of its own (X-21). The places and the index are written out here a second time, by hand: a
place that changes on both sides at once would leave every stored value closed.
"""

import hashlib
import hmac
import inspect
import json
from typing import NamedTuple, get_args, get_type_hints
from uuid import UUID

import msgspec
import pytest

from clarion.catalog.people import People, PersonEntry
from clarion.dispatch.request import CampaignContent, Destination, Direct, InboxEntry
from clarion.domain.address import AddressVersion
from clarion.domain.entity_event import EntityEvent, EventData
from clarion.domain.identity import Channel, Identity
from clarion.domain.inbox import UserMessage
from clarion.domain.notification import NotificationJob
from clarion.domain.person import PersonVersion
from clarion.domain.seal import TenantKeys, unseal
from clarion.errors import SealBroken
from clarion.sealing import place
from clarion.sealing.place import Place
from clarion.sealing.sources import sealed_event_data
from clarion.testing.contracts.harness import RECORDS
from clarion.testing.factories import entity_event
from tests.unit.dispatch_harness import TRACE, DispatchHarness, campaign, direct

BATCH = 30
GUID = UUID(int=1)


class Written(NamedTuple):
    """A place as it was made, and as it must be for ever."""

    made: Place
    table: str
    column: str
    row_key: str


WRITTEN = {
    "payload_place": Written(place.payload_place(GUID), "notification_job", "payload", str(GUID)),
    "destination_place": Written(
        place.destination_place(recipient_id_hash="ab12", channel=Channel.EMAIL, key_hash="cd34"),
        "address_version",
        "ciphertext",
        "ab12:email:cd34",
    ),
    "numbered_destination_place": Written(
        place.numbered_destination_place(recipient_id_hash="ab12", channel=Channel.EMAIL, serial=3),
        "address_version",
        "ciphertext",
        "ab12:email:3",
    ),
    "profile_place": Written(
        place.profile_place(recipient_id_hash="ab12", profile_hash="k1:34"), "person_version", "profile", "ab12:k1:34"
    ),
    "inbox_place": Written(
        place.inbox_place(partition_key="user:7", row_key="25_job"), "user_message", "content", "user:7|25_job"
    ),
    "source_place": Written(
        place.source_place(source_type="class", source="7b", content_hash="k1:34"),
        "source",
        "content",
        "class:7b:k1:34",
    ),
    "event_place": Written(place.event_place(GUID), "entity_event", "data", str(GUID)),
    "blob_place": Written(place.blob_place("school/messaging/1"), "blob", "content", "school/messaging/1"),
}


def test_every_place_is_written_out_here() -> None:
    functions = inspect.getmembers(place, inspect.isfunction)
    makers = [name for name, one in functions if inspect.signature(one).return_annotation is place.Place]
    assert sorted(makers) == sorted(WRITTEN)


@pytest.mark.parametrize("name", WRITTEN)
def test_a_place_is_the_one_that_earlier_programs_sealed_for(name: str) -> None:
    made, *expected = WRITTEN[name]
    assert [made.table, made.column, made.row_key] == expected


class Sealed(NamedTuple):
    """A stored value, where it lies, and what it says."""

    value: bytes
    table: str
    column: str
    row_key: str
    says: bytes


async def stored_values(harness: DispatchHarness) -> dict[str, list[Sealed]]:
    """Store a batch of everything that is private, and read all of it back as it lies there."""
    numbers = range(BATCH)
    people = People(catalog=harness.store, dispatcher=harness.dispatcher, keyring=harness.keyring)
    jobs = await harness.dispatcher.ensure_notification_job(
        "school",
        [direct(origin=Direct(operation="send", idempotency_key=f"key-{n}"), data={"number": n}) for n in numbers],
    )
    destinations = [
        Destination(identity=Identity.user(str(n)), channel=Channel.EMAIL, destination=f"{n}@example.com", trace=TRACE)
        for n in numbers
    ]
    addresses = await harness.dispatcher.ensure_address_versions("school", destinations)
    entries = [InboxEntry(job=jobs[0].record, recipient=Identity.user(str(n)), content=b"line %d" % n) for n in numbers]
    lines = await harness.dispatcher.ensure_user_messages("school", entries)
    await people.put(
        "school", [PersonEntry(identity=Identity.user(str(n)), name=f"P{n}") for n in numbers], trace=TRACE
    )
    keys = await harness.keyring.get("school")
    hashes = [keys.hash_of(Identity.user(str(n))) for n in numbers]
    profiles = sorted(
        await harness.store.rows("school", PersonVersion), key=lambda one: hashes.index(one.recipient_id_hash)
    )
    contents = await harness.dispatcher.ensure_messaging_job(
        "school", [campaign(b"content %d" % n, of=CampaignContent(draft=UUID(int=n))) for n in numbers]
    )
    paths = [f"school/messaging/{content.record.guid}" for content in contents]
    events = await harness.store.ensure_events("school", [event_that_tells(harness, keys, n) for n in numbers])
    return {
        "event": [
            Sealed(
                one.record.data or b"",
                "entity_event",
                "data",
                str(one.record.event_guid),
                b'{"data":{"number":%d}}' % n,
            )
            for n, one in enumerate(events)
        ],
        "payload": [
            Sealed(
                one.record.payload or b"",
                "notification_job",
                "payload",
                str(one.record.guid),
                b'{"to":[{"identity":{"domain":"user","id":"7"},"channel":null}],"data":{"number":%d}}' % n,
            )
            for n, one in enumerate(jobs)
        ],
        "ciphertext": [
            Sealed(
                one.record.ciphertext,
                "address_version",
                "ciphertext",
                f"{one.record.recipient_id_hash}:email:{one.record.key_hash}",
                b"%d@example.com" % n,
            )
            for n, one in enumerate(addresses)
        ],
        "content": [
            Sealed(
                one.record.content or b"",
                "user_message",
                "content",
                f"{one.record.partition_key}|{one.record.row_key}",
                b"line %d" % n,
            )
            for n, one in enumerate(lines)
        ],
        "profile": [
            Sealed(
                one.profile,
                "person_version",
                "profile",
                f"{one.recipient_id_hash}:{one.profile_hash}",
                b'{"name":"P%d"}' % n,
            )
            for n, one in enumerate(profiles)
        ],
        "blob": [
            Sealed(await harness.blobs.get(path), "blob", "content", path, b"content %d" % n)
            for n, path in enumerate(paths)
        ],
    }


def event_that_tells(harness: DispatchHarness, keys: TenantKeys, n: int) -> EntityEvent:
    told, event_guid = EventData(data={"number": n}), UUID(int=n + 1)
    data, data_hash = sealed_event_data(keys, event_guid, told, nonce=harness.keyring.nonce())
    return entity_event(n, event_guid=event_guid, data=data, data_hash=data_hash)


def opened(keys: TenantKeys, one: Sealed, **elsewhere: str) -> bytes:
    """Open a value where it lies, or elsewhere, with nothing of ours but the cipher."""
    where = {
        "tenant_id": "school",
        "table": one.table,
        "column": one.column,
        "row_key": one.row_key,
        **elsewhere,
    }
    return unseal(
        keys.data_keys[1],
        one.value,
        tenant_id=where["tenant_id"],
        table=where["table"],
        column=where["column"],
        row_key=where["row_key"],
    )


def test_every_private_column_is_among_those_looked_at() -> None:
    """All bytes that a record has."""
    private = {
        (kind, name)
        for kind in RECORDS
        for name, hint in get_type_hints(kind).items()
        if bytes in (hint, *get_args(hint))
    }
    assert private == {
        (AddressVersion, "ciphertext"),
        (NotificationJob, "payload"),
        (UserMessage, "content"),
        (PersonVersion, "profile"),
        (EntityEvent, "data"),
    }


async def test_what_is_stored_opens_where_it_lies_and_nowhere_else(harness: DispatchHarness) -> None:
    values = await stored_values(harness)
    keys = await harness.keyring.get("school")
    assert set(values) == {"event", "payload", "ciphertext", "content", "profile", "blob"}
    for kind, ones in values.items():
        assert len(ones) == BATCH
        assert [opened(keys, one) for one in ones] == [one.says for one in ones], kind
        first, second = ones[:2]
        elsewhere: list[dict[str, str]] = [
            {"row_key": second.row_key},
            {"table": "another"},
            {"column": "another"},
            {"tenant_id": "college"},
        ]
        for changed in elsewhere:
            with pytest.raises(SealBroken):
                opened(keys, first, **changed)


async def test_no_two_values_that_are_stored_share_a_nonce(harness: DispatchHarness) -> None:
    """GCM under one nonce gives away both values and the key of its tags; a batch is sealed value by value."""
    sealed = [one.value for ones in (await stored_values(harness)).values() for one in ones]
    nonces = [value[5:17] for value in sealed]  # after the format and the key's serial
    assert len(set(nonces)) == len(nonces) == 6 * BATCH


def hmac16(key: bytes, parts: list[str]) -> str:
    framed = json.dumps(parts, separators=(",", ":")).encode()
    return hmac.new(key, framed, hashlib.sha256).digest()[:16].hex()


async def test_a_destination_is_found_by_a_key_that_serves_for_nothing_else(harness: DispatchHarness) -> None:
    """X-21: whoever holds the keys of hashes or of values cannot look an address up, nor the other way round."""
    row = (await harness.address("Sam@Example.com")).record
    wrapped = await harness.store.find_tenant_keys("school")
    assert wrapped is not None
    by_purpose = {
        purpose: await harness.vault.unwrap(
            text, context=json.dumps(["tenant-key", "school", purpose.value, serial], separators=(",", ":")).encode()
        )
        for (purpose, serial), text in wrapped.items()
    }
    assert sorted(by_purpose) == ["data", "identity", "index"]
    assert len(set(by_purpose.values())) == 3
    index, identity = ({one.value: key for one, key in by_purpose.items()}[name] for name in ("index", "identity"))
    assert row.destination_index == hmac16(index, ["destination", "school", "email", "sam@example.com"])
    assert row.key_hash == hmac16(identity, ["recipient-key", "school", "user", "7", "email", "sam@example.com"])
    assert row.recipient_id_hash == hmac16(identity, ["recipient-id", "school", "user", "7"])


async def test_the_same_destination_has_another_index_in_another_tenant_and_on_another_channel(
    harness: DispatchHarness,
) -> None:
    await harness.dispatcher.ensure_tenant("college")
    given = Destination(identity=Identity.user("7"), channel=Channel.EMAIL, destination="a@example.com", trace=TRACE)
    chat = msgspec.structs.replace(given, channel=Channel.PUSH)
    rows = [
        (await harness.dispatcher.ensure_address_versions(tenant, [one]))[0].record
        for tenant in ("school", "college")
        for one in (given, chat)
    ]
    assert len({row.destination_index for row in rows}) == 4
