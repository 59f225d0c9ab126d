"""What dispatch stores of addresses, contents and messages: sealed, named by its parent, compared before it is kept."""

from typing import Any

import msgspec
import pytest

from clarion.adapters.blobs import open_blobs
from clarion.dispatch import DeliveryDispatcher
from clarion.dispatch.message import outgoing_item
from clarion.dispatch.request import (
    Destination,
    InboxEntry,
    ReportContent,
    WaveContent,
)
from clarion.domain import key
from clarion.domain.address import AddressVersion
from clarion.domain.ensured import Outcome
from clarion.domain.identity import Channel, Identity, Lane
from clarion.domain.inbox import UserMessage
from clarion.domain.messaging import MessagingJob
from clarion.domain.notification import NotificationJob
from clarion.domain.outgoing import OutgoingItem, OutgoingMessage
from clarion.domain.seal import key_serial_of, unseal
from clarion.errors import InvalidAddress, InvalidInput, SealBroken, UnknownVersion
from clarion.sealing.keyring import Keyring
from clarion.sealing.place import numbered_destination_place, open_destination
from clarion.testing.row import QueueEntry
from clarion.testing.vault import SeededVault
from tests.unit.dispatch_harness import DRAFT, SOURCE_AT, TRACE, DispatchHarness, campaign, report


async def test_nothing_private_is_stored_in_the_clear(harness: DispatchHarness) -> None:
    await harness.job(data={"code": "canary-432198"})
    await harness.address("canary@example.com")
    job = (await harness.job(data={"code": "canary-432198"})).record
    line = InboxEntry(job=job, recipient=Identity.user("7"), content=b"canary text")
    await harness.dispatcher.ensure_user_messages("school", [line])
    await harness.dispatcher.ensure_messaging_job("school", [campaign(b"canary content")])
    stored = [repr(await harness.store.rows("school", kind)) for kind in (NotificationJob, AddressVersion, UserMessage)]
    assert all(rows != "[]" and "canary" not in rows for rows in stored)
    path = key.messaging_blob_path(tenant_id="school", messaging_job_guid=(await only(harness, MessagingJob)).guid)
    assert b"canary" not in await harness.blobs.get(path)


async def test_an_address_opens_only_at_its_own_version(harness: DispatchHarness) -> None:
    address = (await harness.address("Sam@Example.com")).record
    keys = await harness.keyring.get("school")
    data_key = keys.data_key(key_serial_of(address.ciphertext))

    def opened(row_key: str) -> bytes:
        place = {"tenant_id": "school", "table": "address_version", "column": "ciphertext", "row_key": row_key}
        return unseal(data_key, address.ciphertext, **place)

    assert opened(f"{address.recipient_id_hash}:email:{address.key_hash}") == b"sam@example.com"
    with pytest.raises(SealBroken):
        opened(f"{address.recipient_id_hash}:email:1")


async def test_one_address_in_two_tenants_has_two_indexes_and_two_hashes(harness: DispatchHarness) -> None:
    await harness.dispatcher.ensure_tenant("college")
    mine = (await harness.address()).record
    given = Destination(identity=Identity.user("7"), channel=Channel.EMAIL, destination="sam@example.com", trace=TRACE)
    (theirs,) = await harness.dispatcher.ensure_address_versions("college", [given])
    assert mine.destination_index != theirs.record.destination_index
    assert mine.key_hash != theirs.record.key_hash


async def test_an_edited_address_is_the_next_version_and_the_same_address_the_same_one(
    harness: DispatchHarness,
) -> None:
    first = await harness.address()
    again = await harness.address("SAM@example.com")
    assert (again.outcome, again.record) == (Outcome.FOUND, first.record)
    edited = await harness.address("kim@example.com")
    assert (edited.outcome, edited.record.serial) == (Outcome.CREATED, 2)
    assert (await harness.address()).record == first.record


async def test_an_address_that_was_sealed_for_the_serial_of_its_owner_still_opens(harness: DispatchHarness) -> None:
    """Databases from before decision 0049 hold such; what is neither of the two is refused."""
    address = (await harness.address("sam@example.com")).record
    keys = await harness.keyring.get("school")
    hashed = address.recipient_id_hash
    place = numbered_destination_place(recipient_id_hash=hashed, channel=Channel.EMAIL, serial=3)
    earlier = place.seal(keys, b"sam@example.com", nonce=b"n" * 12)

    def opened(sealed: bytes, serial: int) -> str:
        return open_destination(
            keys,
            sealed,
            recipient_id_hash=hashed,
            channel=Channel.EMAIL,
            key_hash=address.key_hash,
            serial=serial,
        )

    assert opened(earlier, 3) == opened(address.ciphertext, 3) == "sam@example.com"
    with pytest.raises(SealBroken):
        opened(earlier, 4)


async def test_content_is_stored_before_its_row_and_found_again(harness: DispatchHarness) -> None:
    (created,) = await harness.dispatcher.ensure_messaging_job("school", [campaign(b"spring fair")])
    (found,) = await harness.dispatcher.ensure_messaging_job("school", [campaign(b"spring fair")])
    assert (created.outcome, found.outcome) == (Outcome.CREATED, Outcome.FOUND)


async def test_other_content_under_the_same_job_stops_and_is_reported_and_its_neighbours_proceed(
    harness: DispatchHarness,
) -> None:
    await harness.dispatcher.ensure_messaging_job("school", [campaign(b"spring fair")])
    wave = campaign(b"spring fair", of=WaveContent(campaign=DRAFT, n=1))
    told = campaign(b"week 9", of=ReportContent(occurrence=report()))
    answers = await harness.dispatcher.ensure_messaging_job("school", [wave, campaign(b"autumn fair"), told])
    assert [answer.outcome for answer in answers] == [Outcome.CREATED, Outcome.CONFLICT, Outcome.CREATED]
    assert answers[1].differing == ("content_hash",)
    (case,) = await harness.store.list_support_cases("school")
    assert case.case_id == answers[1].case_id
    details = msgspec.json.decode(case.details)["differing"]["content_hash"]
    assert details["stored"] != details["given"]


async def test_a_blob_left_by_an_attempt_that_never_got_its_row_still_stops_other_content(
    harness: DispatchHarness,
) -> None:
    await harness.dispatcher.ensure_messaging_job("school", [campaign(b"spring fair")])
    await harness.store.remove("school", await only(harness, MessagingJob))
    (answer,) = await harness.dispatcher.ensure_messaging_job("school", [campaign(b"autumn fair")])
    assert answer.outcome is Outcome.CONFLICT
    assert not await harness.store.rows("school", MessagingJob)


async def test_a_lost_blob_is_written_again_by_the_same_content(harness: DispatchHarness) -> None:
    await harness.dispatcher.ensure_messaging_job("school", [campaign(b"spring fair")])
    fresh = DeliveryDispatcher(store=harness.store, blobs=open_blobs("memory://"), keyring=harness.keyring)
    (answer,) = await fresh.ensure_messaging_job("school", [campaign(b"spring fair")])
    assert answer.outcome is Outcome.FOUND


async def test_messages_take_bucket_and_name_from_their_parent(harness: DispatchHarness) -> None:
    address = (await harness.address()).record
    job = (await harness.job()).record
    (sent,) = await harness.dispatcher.ensure_outgoing_messages("school", [send(job, address)])
    (inbox,) = await harness.dispatcher.ensure_user_messages(
        "school", [InboxEntry(job=job, recipient=Identity.user("7"))]
    )
    row = sent.record
    assert (row.pk, row.rk, row.bucket) == (job.row_key, f"{address.key_hash}_email", 202603)
    assert inbox.record.message_id == row.message_id
    assert inbox.record.row_key == f"{key.reverse_ticks(SOURCE_AT)}_{job.row_key}"
    (content,) = await harness.dispatcher.ensure_messaging_job("school", [campaign(b"spring fair")])
    (other,) = await harness.dispatcher.ensure_outgoing_messages("school", [send(content.record, address)])
    assert other.record.pk == str(content.record.guid)
    assert other.record.message_id != row.message_id


async def test_messages_of_several_parents_go_in_one_set(harness: DispatchHarness) -> None:
    address = (await harness.address()).record
    job = (await harness.job()).record
    (content,) = await harness.dispatcher.ensure_messaging_job("school", [campaign(b"spring fair")])
    sends = [send(content.record, address), send(job, address), send(job, address, attempt_no=2)]
    answers = await harness.dispatcher.ensure_outgoing_messages("school", sends)
    assert [answer.outcome for answer in answers] == [Outcome.CREATED] * 3
    assert [answer.record.pk for answer in answers] == [str(content.record.guid), job.row_key, job.row_key]
    entries = {entry.key: entry for entry in await harness.store.rows("school", QueueEntry)}
    keys = [entries[answer.record.pk, answer.record.rk].order_key for answer in answers]
    assert keys[0] == keys[1] == keys[2] is not None


async def test_rows_of_one_recipient_keep_their_order_within_a_channel_and_a_lane_and_not_in_bulk(
    harness: DispatchHarness,
) -> None:
    address = (await harness.address()).record
    job = (await harness.job()).record
    for attempt_no, lane in enumerate(Lane, start=2):
        await harness.dispatcher.ensure_outgoing_messages(
            "school", [send(job, address, attempt_no=attempt_no, lane=lane)]
        )
    keys = {entry.lane: entry.order_key for entry in await harness.store.rows("school", QueueEntry)}
    assert keys[Lane.BULK] is None
    assert len(set(keys.values())) == len(Lane)


@pytest.mark.parametrize(
    "changes, field",
    [
        ({"route": ""}, "route"),
        ({"attempt_no": 1}, "attempt_no"),
        ({"broadcast": "s" * 513}, "broadcast"),
        ({"uncertain_policy": "hope"}, "uncertain_policy"),
    ],
)
async def test_a_send_that_breaks_a_limit_names_its_field(
    harness: DispatchHarness, changes: dict[str, Any], field: str
) -> None:
    address = (await harness.address()).record
    job = (await harness.job()).record
    with pytest.raises(InvalidInput) as refused:
        await harness.dispatcher.ensure_outgoing_messages("school", [send(job, address, **changes)])
    assert refused.value.field == field
    assert not await harness.store.rows("school", OutgoingMessage)


def send(
    parent: NotificationJob | MessagingJob, address: AddressVersion, lane: Lane = Lane.NORMAL, **changes: Any
) -> OutgoingItem:
    item = outgoing_item(
        "school",
        parent,
        recipient_id_hash=address.recipient_id_hash,
        channel=address.channel,
        address_id=address.id or 0,
        lane=lane,
    )
    return msgspec.structs.replace(item, **changes)


async def test_a_parent_with_keys_of_a_newer_program_is_left_to_it(harness: DispatchHarness) -> None:
    address = (await harness.address()).record
    job = msgspec.structs.replace((await harness.job()).record, key_version=2)
    with pytest.raises(UnknownVersion):
        await harness.dispatcher.ensure_outgoing_messages("school", [send(job, address)])
    with pytest.raises(UnknownVersion):
        await harness.dispatcher.ensure_user_messages("school", [InboxEntry(job=job, recipient=Identity.user("7"))])
    assert not await harness.store.rows("school", OutgoingMessage)


async def test_a_wrong_address_is_refused_without_being_repeated(harness: DispatchHarness) -> None:
    with pytest.raises(InvalidAddress) as refused:
        await harness.address("sam at example.com")
    assert "sam" not in str(refused.value)


async def test_two_makers_of_one_tenant_end_with_the_same_keys(harness: DispatchHarness) -> None:
    assert await harness.dispatcher.ensure_tenant("college")
    other = Keyring(harness.store, SeededVault())
    assert not await other.ensure("college")
    assert await other.get("college") == await Keyring(harness.store, SeededVault()).get("college")


async def only(harness: DispatchHarness, kind: type[Any]) -> Any:
    (row,) = await harness.store.rows("school", kind)
    return row
