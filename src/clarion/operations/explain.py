"""What would become of a notification for one person: the same decision as that of `generate`, and nothing is stored.

The facts are loaded by the function of the stage (`pipeline.generate.facts`) and judged by the same rules
(`domain.decision`, `domain.setting`). Nothing is written, and no address version is made.
"""

from collections.abc import Mapping, Sequence
from uuid import UUID

from clarion.bootstrap import Platform
from clarion.catalog.settings import require_unit
from clarion.client import wire_explain
from clarion.domain.audience import Addressee, EntityKey, audience_of
from clarion.domain.decision import decide, terms_of
from clarion.domain.recipient import FrozenRecipient, Target
from clarion.domain.setting import EffectiveSetting, switched_off
from clarion.errors import InvalidInput
from clarion.operations.whom import opened_destination
from clarion.pipeline.generate.facts import load_known
from clarion.ports.facts import FactStore
from clarion.producers.direct import check_asked_channels, require_published, target_of


class Explain:
    """Asking what would be."""

    def __init__(self, platform: Platform) -> None:
        """Ask this platform."""
        self._store = platform.store
        self._sends = platform.sends
        self._keyring = platform.keyring

    async def would(self, tenant_id: str, asked: wire_explain.WouldRequest, *, whole: bool) -> wire_explain.Would:
        """Say what a notification would do for a person, channel by channel; `whole` shows addresses unmasked.

        A person whom nobody knows is an answer; a type, unit or channel that does not exist is refused.
        """
        target = _person(asked)
        published = await self._sends.look_up(tenant_id, asked.type)
        definition = require_published(published, asked.type).definition
        check_asked_channels(definition, asked.channels)
        await require_unit(self._store, tenant_id, asked.business_unit)
        named = (tenant_id, asked.type, asked.business_unit)
        setting = (await self._store.find_settings([named]))[named]
        keys = await self._keyring.get(tenant_id)
        hashed = keys.hash_of(target.identity)
        known = await load_known(self._store, tenant_id, [hashed])
        terms = terms_of(definition, channels=asked.channels, setting=setting)
        (frozen,) = decide([target], terms=terms, known=known, hash_of=keys.hash_of)
        ids = {one.address_id for one in frozen.decisions if one.address_id is not None}
        versions = await self._store.find_addresses(tenant_id, ids)
        destinations = {one.id or 0: opened_destination(one, keys, whole=whole) for one in versions}
        off = switched_off(asked.type, setting)
        entity = None if asked.entity is None else (asked.entity.type, asked.entity.guid)
        return wire_explain.Would(
            type=asked.type,
            version=published.version or 0,
            recipient=f"{target.identity.domain}:{target.identity.id}",
            known=hashed in known.people,
            skipped=None if off is None else wire_explain.WholeSkip(rule=off[0], reason=off[1]),
            channels=_channels(frozen, destinations),
            named_by=await named_by(
                self._store, tenant_id, hashed, setting.recipients, unit=asked.business_unit, entity=entity
            ),
            names=tuple(str(one) for one in setting.recipients),
            decided_by=_decided_by(setting),
        )


async def named_by(
    facts: FactStore,
    tenant_id: str,
    recipient_id_hash: str,
    addressees: Sequence[Addressee],
    *,
    unit: UUID | None,
    entity: EntityKey | None,
) -> tuple[str, ...]:
    """Say by which of these addressees a person is meant, for a send about this entity in this business unit.

    One question for each addressee, of whom a setting has a few: for the first person behind the one that stands right
    before this one.
    """
    before = int(recipient_id_hash, 16) - 1
    after = "" if before < 0 else f"{before:0{len(recipient_id_hash)}x}"
    found: list[str] = []
    for one in addressees:
        audience = audience_of([one], unit=unit, entity=entity)
        if audience and recipient_id_hash in await facts.find_audience(tenant_id, audience, after=after, limit=1):
            found.append(str(one))
    return tuple(found)


def _person(asked: wire_explain.WouldRequest) -> Target:
    """Read the person who is asked about; what would become of a group or of an address, a dry run says."""
    if asked.recipient.user is None and asked.recipient.employee is None:
        raise InvalidInput(
            "it is neither a user nor an employee", field="recipient", hint='write, for example, {"user": "parent-17"}'
        )
    return target_of(
        user=asked.recipient.user,
        employee=asked.recipient.employee,
        group=asked.recipient.group,
        address=asked.recipient.address,
        channel=asked.recipient.channel,
        field="recipient",
    )


def _channels(frozen: FrozenRecipient, destinations: Mapping[int, str]) -> tuple[wire_explain.WouldChannel, ...]:
    return tuple(
        wire_explain.WouldChannel(
            channel=one.channel,
            goes=one.skipped is None,
            destination=None if one.address_id is None else destinations.get(one.address_id),
            rule=one.rule,
            reason=one.skipped,
        )
        for one in frozen.decisions
    )


def _decided_by(setting: EffectiveSetting) -> wire_explain.Decided:
    return wire_explain.Decided(
        enabled=setting.enabled_by, recipients=setting.recipients_by, channels=setting.channels_by
    )
