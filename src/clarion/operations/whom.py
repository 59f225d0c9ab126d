"""Whom a notification is for, as its reader may see it: people by the tenant's own ids, addresses whole or masked.

Destinations are stored sealed. They are opened in memory, within the tenant, for the messages of one answer. Who may
see messages as their recipients do gets them whole, everybody else gets what `domain.destination.mask` leaves of them.
"""

from collections.abc import Collection, Mapping
from uuid import UUID

import msgspec

from clarion.client import wire
from clarion.dispatch.request import Payload
from clarion.domain import recipient
from clarion.domain.address import AddressVersion
from clarion.domain.destination import mask
from clarion.domain.identity import Channel, Identity, IdentityDomain
from clarion.domain.recipient import Decision, FrozenRecipient
from clarion.domain.seal import TenantKeys
from clarion.domain.skip import SkipRule
from clarion.errors import SealBroken
from clarion.operations.part import Part, message_of
from clarion.ports.insights import InsightStore
from clarion.sealing.place import open_destination, payload_place

STRANGER = "somebody who is not known"
"""A member of a group without a person behind it."""

UNREADABLE = "an address that cannot be shown"


class Whom(msgspec.Struct, frozen=True, kw_only=True):
    """Who is behind the messages of a notification, and where each goes."""

    recipients: tuple[wire.RecipientLine, ...] = ()
    names: Mapping[UUID | None, str] = {}  # by the id of the message
    destinations: Mapping[int, str] = {}  # by the id of the address version
    skips: tuple[tuple[UUID, Decision], ...] = ()


async def find_whom(store: InsightStore, keys: TenantKeys, part: Part, *, whole: bool) -> Whom:
    """Find out whom a notification is for, as much of it as there is; `whole` shows addresses unmasked."""
    job = part.timeline.job
    if part.recipients is None:
        asked_for = () if job.payload is None else _asked_for(job.guid, job.payload, keys, whole=whole)
        return Whom(
            recipients=tuple(
                wire.RecipientLine(recipient=name, message_id=job.message_id, skipped=()) for name in asked_for
            )
        )
    meant = [(message_of(keys, job, one), one) for one in part.recipients]
    wanted = {decision.address_id for _, one in meant for decision in one.decisions if decision.address_id is not None}
    versions = await store.find_addresses(keys.tenant_id, wanted)
    destinations = {version.id or 0: opened_destination(version, keys, whole=whole) for version in versions}
    skips = [(mine, decision) for mine, one in meant for decision in one.decisions if decision.skipped is not None]
    lines = tuple(_line(mine, one, destinations) for mine, one in meant)
    return Whom(
        recipients=lines,
        names={line.message_id: line.recipient for line in lines},
        destinations=destinations,
        skips=tuple(skips),
    )


async def find_asked_for(
    store: InsightStore, keys: TenantKeys, guids: Collection[UUID], *, whole: bool
) -> dict[UUID, tuple[str, ...]]:
    """Name the recipients that some jobs were asked for, by the jobs' guids: of jobs for which nobody was decided."""
    sealed = await store.find_payloads(keys.tenant_id, guids)
    return {guid: _asked_for(guid, payload, keys, whole=whole) for guid, payload in sealed.items()}


async def find_names(
    store: InsightStore, keys: TenantKeys, sets: Mapping[UUID, str | None], *, whole: bool
) -> dict[UUID, str]:
    """Name the single recipients of some jobs, by the jobs' guids; those who cannot be read are left out."""
    frozen: dict[UUID, FrozenRecipient] = {}
    for guid, text in sets.items():
        try:
            found = recipient.decode(text or "[]")
        except msgspec.DecodeError:
            continue
        if found:
            frozen[guid] = found[0]
    bare = [one for one in frozen.values() if one.domain is IdentityDomain.ADDRESS]
    wanted = {decision.address_id for one in bare for decision in one.decisions if decision.address_id is not None}
    versions = await store.find_addresses(keys.tenant_id, wanted)
    destinations = {version.id or 0: opened_destination(version, keys, whole=whole) for version in versions}
    return {guid: name_of(one, destinations) for guid, one in frozen.items()}


def _line(message_id: UUID, one: FrozenRecipient, destinations: Mapping[int, str]) -> wire.RecipientLine:
    skipped = skips_of(one, destinations)
    return wire.RecipientLine(recipient=name_of(one, destinations), message_id=message_id, skipped=skipped)


def skips_of(one: FrozenRecipient, destinations: Mapping[int, str]) -> tuple[wire.Skipped, ...]:
    """Say on which channels a recipient gets nothing, and why."""
    return tuple(
        wire.Skipped(
            channel=decision.channel,
            reason=decision.skipped,
            rule=decision.rule or SkipRule.OTHER,  # frozen before there were rules
            destination=destinations.get(decision.address_id or 0),
        )
        for decision in one.decisions
        if decision.skipped is not None
    )


def name_of(one: FrozenRecipient, destinations: Mapping[int, str]) -> str:
    """Name a recipient: by the tenant's own id, or by the address where that is all there is."""
    if one.domain is IdentityDomain.ADDRESS:
        shown = [destinations.get(decision.address_id or 0) for decision in one.decisions]
        return next((text for text in shown if text is not None), UNREADABLE)
    return STRANGER if one.person_id is None else f"{one.domain}:{one.person_id}"


def _asked_for(job_guid: UUID, payload: bytes, keys: TenantKeys, *, whole: bool) -> tuple[str, ...]:
    """Name the recipients of a job that were not decided on, as its caller did; they are sealed with its data."""
    try:
        asked = msgspec.json.decode(payload_place(job_guid).open(keys, payload), type=Payload)
    except (SealBroken, msgspec.DecodeError):
        return ()
    people = tuple(_named(target.identity, target.channel, whole=whole) for target in asked.to)
    return people + tuple(map(str, asked.addressees or ()))


def _named(identity: Identity, channel: Channel | None, *, whole: bool) -> str:
    if identity.domain is not IdentityDomain.ADDRESS:
        return f"{identity.domain}:{identity.id}"
    if channel is None:
        return UNREADABLE
    return identity.id if whole else mask(channel, identity.id)


def opened_destination(version: AddressVersion, keys: TenantKeys, *, whole: bool) -> str:
    """Open where a message goes; masked unless its reader may see it whole."""
    try:
        destination = open_destination(
            keys,
            version.ciphertext,
            recipient_id_hash=version.recipient_id_hash,
            channel=version.channel,
            key_hash=version.key_hash,
            serial=version.serial,
        )
    except SealBroken:
        return UNREADABLE
    return destination if whole else mask(version.channel, destination)
