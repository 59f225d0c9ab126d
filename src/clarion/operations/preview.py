"""What a send would come to: who would get what, on which channel, and how it would read. Stores nothing.

The checks are those of the door, the decision is that of `generate` (`domain.decision`), the texts are those of the
renderer. Addresses are whole: only the program asks, and whoever can read the store and its keys may see them.
"""

from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

import msgspec

from clarion.bootstrap import Platform
from clarion.catalog.settings import require_unit
from clarion.client import wire
from clarion.dispatch.job import entity_of
from clarion.dispatch.request import JobRequest, Trace
from clarion.domain import derived_id
from clarion.domain.audience import audience_of
from clarion.domain.content import Content
from clarion.domain.decision import Known, decide, decide_people, in_their_form, nearest, terms_of
from clarion.domain.identity import Channel, IdentityDomain, Lane
from clarion.domain.person import Contact
from clarion.domain.recipient import NAMED_MAX, FrozenRecipient
from clarion.domain.seal import TenantKeys
from clarion.domain.setting import EffectiveSetting, Place, switched_off
from clarion.errors import Conflict
from clarion.operations.notification import about_groups, about_nobody, read_request
from clarion.operations.status import Status
from clarion.operations.whom import name_of, opened_destination
from clarion.pipeline.generate.facts import load_known
from clarion.ports.renderer import Bundle, Merge, render_one
from clarion.producers.direct import origin_of
from clarion.sealing.place import open_profile

SECONDS_MAX: Final = 10.0
"""For the merge of one channel: somebody waits for it."""


class PreviewedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message that would be made, or why there would be none."""

    recipient: str
    channel: Channel
    destination: str | None = None
    skipped: str | None = None


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """What a send would come to."""

    type: str
    version: int | None
    lane: Lane | None
    ttl_seconds: int | None = None
    enabled: bool
    off: str | None = None
    """Why nobody would get it at all."""
    addressed_to: tuple[str, ...] = ()
    """Whom the settings name, where the send names nobody; `messages` are those to the first of them."""
    addressed_by: Place | None = None
    repeated: bool
    """The same was sent under its key before, so that nothing would be sent now."""
    warnings: tuple[str, ...] = ()
    messages: tuple[PreviewedMessage, ...]
    contents: dict[Channel, Content]


async def preview(
    platform: Platform, tenant_id: str, asked: wire.SendRequest, *, key: str | None, actor: str, trace: Trace
) -> Preview:
    """Check a send as the door would, and show what would become of it."""
    published = await platform.sends.look_up(tenant_id, asked.type)
    origin = origin_of(key, platform.ids)
    request = read_request(asked, origin=origin, source_at=published.at, actor=actor, trace=trace)
    await require_unit(platform.store, tenant_id, request.business_unit)
    repeated = await _is_repeated(platform, tenant_id, request)
    named = (tenant_id, request.event_type, request.business_unit)
    setting = (await platform.store.find_settings([named]))[named]
    if repeated:
        return Preview(
            type=asked.type, version=None, lane=None, enabled=setting.enabled, repeated=True, messages=(), contents={}
        )
    bundle = await platform.sends.check(tenant_id, request, published, may_raise=True)
    off = switched_off(request.event_type, setting)
    channels = request.channels or bundle.definition.channels
    frozen, messages = await _messages(platform, tenant_id, request, bundle, setting)
    used = [channel for channel in channels if any(_goes(one, channel) for one in messages)]
    return Preview(
        type=asked.type,
        version=published.version,
        lane=asked.lane or bundle.definition.lane,
        ttl_seconds=asked.ttl_seconds or bundle.definition.ttl_seconds,
        enabled=setting.enabled,
        off=None if off is None else off[1],
        addressed_to=() if request.to else tuple(map(str, setting.recipients)),
        addressed_by=None if request.to else setting.recipients_by,
        repeated=False,
        warnings=(
            *about_nobody(request, setting),
            *await about_groups(platform.store, tenant_id, request),
            *await Status(platform.store, clock=platform.clock).warnings(used),
        ),
        messages=tuple(messages),
        contents=await _contents(platform, tenant_id, bundle, channels=used, request=request, frozen=frozen),
    )


async def _contents(
    platform: Platform,
    tenant_id: str,
    bundle: Bundle,
    *,
    channels: Sequence[Channel],
    request: JobRequest,
    frozen: Sequence[FrozenRecipient],
) -> dict[Channel, Content]:
    """Merge what would be sent on each channel, to the first recipient who gets it there."""
    contents: dict[Channel, Content] = {}
    for channel in channels:
        first = next(one for one in frozen for at in one.decisions if at.channel is channel and at.skipped is None)
        merge = Merge(
            request.data,
            locale=first.locale or "",
            zone=first.tz_id or "UTC",
            recipient=await _profile(platform, tenant_id, first),
            entity=entity_of(request),
            public_url=platform.settings.public_url or "",
        )
        contents[channel] = await render_one(
            platform.renderer, bundle, channel, merge, tenant_id=tenant_id, seconds_max=SECONDS_MAX
        )
    return contents


async def _profile(platform: Platform, tenant_id: str, one: FrozenRecipient) -> Mapping[str, object]:
    """Open what templates may read of a recipient; nothing where nothing is known."""
    if one.person_version_id is None:
        return {}
    keys = await platform.keyring.get(tenant_id)
    found = (await platform.store.find_person_versions(tenant_id, [one.person_version_id]))[one.person_version_id]
    names = {"recipient_id_hash": found.recipient_id_hash, "profile_hash": found.profile_hash}
    return open_profile(keys, found.profile, **names)


async def _is_repeated(platform: Platform, tenant_id: str, request: JobRequest) -> bool:
    """Tell whether the same was sent under its key before; raise Conflict where it was something else.

    What no row can hold is refused here too.
    """
    accepted = await platform.dispatcher.was_accepted(tenant_id, request)
    if accepted is None:
        raise Conflict("the key was used before for something else", hint="use a new key for a new notification")
    return accepted


def _goes(message: PreviewedMessage, channel: Channel) -> bool:
    return message.channel is channel and message.skipped is None


async def _messages(
    platform: Platform, tenant_id: str, request: JobRequest, bundle: Bundle, setting: EffectiveSetting
) -> tuple[Sequence[FrozenRecipient], list[PreviewedMessage]]:
    """Decide about the recipients as `generate` would; a bare address has no stored version yet, and needs none."""
    keys = await platform.keyring.get(tenant_id)
    bare = {
        (target.channel, target.identity.id): -number  # no id of a stored version is negative
        for number, target in enumerate(request.to, start=1)
        if target.identity.domain is IdentityDomain.ADDRESS and target.channel is not None
    }
    terms = terms_of(bundle.definition, channels=request.channels, setting=setting)
    if request.to:
        known = await _known(platform, keys, request, bare)
        decided = decide(request.to, terms=terms, known=known, hash_of=keys.hash_of)
    else:
        audience = audience_of(setting.recipients, unit=request.business_unit, entity=request.entity)
        first = await platform.store.find_audience(tenant_id, audience, limit=NAMED_MAX) if audience else ()
        known = await load_known(platform.store, tenant_id, first)
        people = decide_people(first, terms=terms, known=known)
        decided = tuple(sorted(people, key=lambda one: (one.domain, one.person_id or "")))  # for whoever reads it
    unit = request.business_unit
    forms = await platform.store.find_local_forms(tenant_id, [] if unit is None else [unit])
    frozen = in_their_form(
        decided,
        people=known.people,
        asked=request.locale,
        others=nearest(forms, unit),
        locales=bundle.definition.locales,
    )
    ids = {decision.address_id for one in frozen for decision in one.decisions if (decision.address_id or 0) > 0}
    versions = await platform.store.find_addresses(tenant_id, {one for one in ids if one is not None})
    destinations = {version.id or 0: opened_destination(version, keys, whole=True) for version in versions}
    destinations |= {number: address for (_, address), number in bare.items()}
    return frozen, [message for one in frozen for message in _of(one, destinations)]


async def _known(
    platform: Platform, keys: TenantKeys, request: JobRequest, bare: Mapping[tuple[Channel, str], int]
) -> Known:
    identities = [target.identity for target in request.to]
    groups = {UUID(one.id) for one in identities if one.domain is IdentityDomain.GROUP}
    members = await platform.store.find_members(keys.tenant_id, groups) if groups else {}
    people = {keys.hash_of(one) for one in identities if one.domain in (IdentityDomain.USER, IdentityDomain.EMPLOYEE)}
    people |= {one for group in members.values() for one in group}
    alone = {keys.hash_of(one) for one in identities if one.domain is IdentityDomain.ADDRESS}
    addresses = {
        (channel, address): Contact(
            channel=channel,
            address_id=number,
            destination_index=derived_id.destination_index(
                index_key=keys.index_key, tenant_id=keys.tenant_id, channel=channel, destination=address
            ),
        )
        for (channel, address), number in bare.items()
    }
    known = await load_known(platform.store, keys.tenant_id, people, bare=alone, addresses=addresses)
    return msgspec.structs.replace(known, members=members)


def _of(one: FrozenRecipient, destinations: Mapping[int, str]) -> list[PreviewedMessage]:
    recipient = name_of(one, destinations)
    return [
        PreviewedMessage(
            recipient=recipient,
            channel=decision.channel,
            destination=None if decision.address_id is None else destinations.get(decision.address_id),
            skipped=decision.skipped,
        )
        for decision in one.decisions
    ]
