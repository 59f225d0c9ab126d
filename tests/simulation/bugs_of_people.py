"""Stores and blobs with a bug each about people, settings and opt-outs, as those in `bugs`. No product file changes."""

from collections.abc import Collection, Sequence
from datetime import timedelta
from uuid import UUID

import msgspec

from clarion.domain.audience import HELD_EVERYWHERE, Audience
from clarion.domain.claim import ClaimedMessage, FlowQuota, StageResult
from clarion.domain.ensured import Ensured
from clarion.domain.notification import NotificationStatus
from clarion.domain.outgoing import OutgoingItem, OutgoingMessage
from clarion.domain.person import Person
from clarion.domain.recipient import FrozenSet
from clarion.domain.setting import EffectiveSetting
from clarion.domain.suppression import EVERYTHING, Cause
from clarion.ports.blobs import Blobs
from tests.simulation.bugs import BeforeClaim, Planted

Asked = tuple[str, str, UUID | None]


class WithoutSuppressions(Planted):
    """Claims as if nobody had refused anything; some of the rows of the table are out of sight meanwhile."""

    hidden = "true"

    async def claim_outgoing(
        self, quotas: Sequence[FlowQuota], *, token: UUID, lease: timedelta, actor: str
    ) -> list[ClaimedMessage]:
        text = f"SELECT tenant_id, subject, scope FROM suppression WHERE {self.hidden}"  # noqa: S608  our own text
        kept = self.sql(text)
        for tenant, subject, scope in kept:
            self._move(f"{tenant}", f"{subject}", f"{scope}", to=f"hidden {scope}")
        try:
            return await self.real.claim_outgoing(quotas, token=token, lease=lease, actor=actor)
        finally:
            for tenant, subject, scope in kept:
                self._move(f"{tenant}", f"{subject}", f"hidden {scope}", to=f"{scope}")

    def _move(self, tenant: str, subject: str, scope: str, *, to: str) -> None:
        self.sql(
            "UPDATE suppression SET scope = :to WHERE tenant_id = :tenant AND subject = :subject AND scope = :scope"
            " RETURNING scope",
            tenant=tenant,
            subject=subject,
            scope=scope,
            to=to,
        )


class CategoriesAreForgotten(WithoutSuppressions):
    """Claims what somebody refused as a category, and not what is suppressed as a whole."""

    hidden = f"scope <> '{EVERYTHING}'"


class BouncesAreForgotten(WithoutSuppressions):
    """Claims what goes to where something bounced."""

    hidden = "cause = 'bounce'"


class RequiredIsRefused(Planted):
    """Makes rows of a required category as if it could be refused."""

    async def ensure_outgoing_messages(
        self, tenant_id: str, items: Sequence[OutgoingItem]
    ) -> list[Ensured[OutgoingMessage]]:
        refusable = [msgspec.structs.replace(item, category=item.category or "alarm") for item in items]
        return await self.real.ensure_outgoing_messages(tenant_id, refusable)


class SuppressesTheWrongOne(Planted):
    """Finds that everybody is suppressed as soon as anybody is."""

    async def find_suppressions(self, tenant_id: str, subjects: Collection[str]) -> dict[str, dict[str, Cause]]:
        if not self.sql("SELECT subject FROM suppression WHERE scope = '*' LIMIT 1"):
            return {}
        return {subject: {EVERYTHING: Cause.MANUAL} for subject in subjects}


class OptOutsAreNotLookedUp(Planted):
    """Decides as if nobody had refused anything."""

    async def find_suppressions(self, tenant_id: str, subjects: Collection[str]) -> dict[str, dict[str, Cause]]:
        return {}


class OtherAudience(Planted):
    """Looks for other people than those of the audience."""

    async def find_audience(self, tenant_id: str, audience: Audience, *, after: str = "", limit: int) -> Sequence[str]:
        return await self.real.find_audience(tenant_id, self.changed(audience), after=after, limit=limit)

    async def find_audiences(
        self, tenant_id: str, audiences: Sequence[Audience], *, limit: int
    ) -> Sequence[Sequence[str]]:
        return await self.real.find_audiences(tenant_id, [self.changed(one) for one in audiences], limit=limit)

    def changed(self, audience: Audience) -> Audience:
        return audience


class RelationsAreForgotten(OtherAudience):
    """Finds no guardian."""

    def changed(self, audience: Audience) -> Audience:
        return msgspec.structs.replace(audience, relations=())


class RolesOfAllUnits(OtherAudience):
    """Finds those who hold a role in another unit, too."""

    def changed(self, audience: Audience) -> Audience:
        units = {str(unit) for (unit,) in self.sql("SELECT DISTINCT unit FROM role_holder")}
        everywhere = tuple((role, unit) for role, _ in audience.roles for unit in sorted({HELD_EVERYWHERE, *units}))
        return msgspec.structs.replace(audience, roles=tuple(dict.fromkeys(everywhere)))


class NestedGroupsAreForgotten(OtherAudience):
    """Leaves out one of those who are in the class alone, or in any audience of several."""

    async def find_audiences(
        self, tenant_id: str, audiences: Sequence[Audience], *, limit: int
    ) -> Sequence[Sequence[str]]:
        found = await self.real.find_audiences(tenant_id, audiences, limit=limit)
        own = {
            str(hashed)
            for (hashed,) in self.sql(
                "SELECT recipient_id_hash FROM group_member WHERE group_guid IN (SELECT group_guid FROM group_child)"
            )
        }
        return [
            [one for one in some if one in own] if audience.groups else some
            for audience, some in zip(audiences, found, strict=True)
        ]


class UnitsSayNothing(Planted):
    """Takes the setting of the tenant for every unit."""

    async def find_settings(self, asked: Collection[Asked]) -> dict[Asked, EffectiveSetting]:
        found = await self.real.find_settings({(tenant, key, None) for tenant, key, _ in asked})
        return {(tenant, key, unit): found[tenant, key, None] for tenant, key, unit in asked}


class ChannelsOfSettingsAreForgotten(Planted):
    """Sends by all channels of a type, whatever the settings say."""

    async def find_settings(self, asked: Collection[Asked]) -> dict[Asked, EffectiveSetting]:
        found = await self.real.find_settings(asked)
        return {key: msgspec.structs.replace(one, channels=None) for key, one in found.items()}


class UnverifiedIsGoodEnough(Planted):
    """Takes every address for verified."""

    async def find_recipients(self, tenant_id: str, hashes: Collection[str]) -> dict[str, Person]:
        return {
            hashed: msgspec.structs.replace(
                one, contacts=tuple(msgspec.structs.replace(at, verified=True) for at in one.contacts)
            )
            for hashed, one in (await self.real.find_recipients(tenant_id, hashes)).items()
        }


class FirstAddressOnly(Planted):
    """Knows one address of a person on each channel."""

    async def find_recipients(self, tenant_id: str, hashes: Collection[str]) -> dict[str, Person]:
        found = await self.real.find_recipients(tenant_id, hashes)
        return {
            hashed: msgspec.structs.replace(
                one, contacts=tuple({at.channel: at for at in reversed(one.contacts)}.values())
            )
            for hashed, one in found.items()
        }


class HistoryIsForgotten(Planted):
    """Freezes sets and does not note who is in them."""

    async def freeze_recipients(self, tenant_id: str, sets: Sequence[FrozenSet]) -> dict[int, str]:
        return await self.real.freeze_recipients(
            tenant_id, [msgspec.structs.replace(one, recipients=()) for one in sets]
        )


class SetsAreReadAnew(Planted):
    """Forgets the set of a job whose worker was lost, so that the next one decides again."""

    async def claim_stage(self, *args: object, **options: object) -> object:
        self.sql(
            "UPDATE notification_job SET recipients = NULL WHERE recipients IS NOT NULL AND row_key IN"
            " (SELECT artifact_rk FROM notification_scheduler WHERE rescue_count > 0 AND status = 'Ready')"
        )
        return await self.real.claim_stage(*args, **options)  # type: ignore[arg-type]  # as it was called


class LinesAreCountedTwice(Planted):
    """Counts every line of an inbox as two that nobody has read."""

    async def ensure_user_messages(self, *args: object, **options: object) -> object:
        made = await self.real.ensure_user_messages(*args, **options)  # type: ignore[arg-type]  # as it was called
        self.sql("UPDATE inbox_count SET unread = 2 * lines")
        return made


class EditsLeakIntoRetries(BeforeClaim):
    """Sends a message again to where its recipient has moved since."""

    text = (
        "UPDATE outgoing_message SET address_id = ("
        " SELECT max(c.address_id) FROM contact c JOIN address_version a ON a.recipient_id_hash = c.recipient_id_hash"
        " AND a.channel = c.channel WHERE a.id = outgoing_message.address_id)"
        " WHERE status = 'RetryReady' AND address_id IN ("
        " SELECT a.id FROM contact c JOIN address_version a ON a.recipient_id_hash = c.recipient_id_hash"
        " AND a.channel = c.channel)"
    )


class PagesAreSkipped(OtherAudience):
    """Leaves out the first of every page but the first."""

    async def find_audience(self, tenant_id: str, audience: Audience, *, after: str = "", limit: int) -> Sequence[str]:
        found = await self.real.find_audience(tenant_id, audience, after=after, limit=limit)
        return found[1:] if after else found


class DoneAfterOneStep(Planted):
    """Finishes a job with a large set as soon as the rows of its first recipients are made."""

    async def finish_stage(self, results: Sequence[StageResult]) -> set[int]:
        return await self.real.finish_stage([self._done(one) for one in results])

    def _done(self, one: StageResult) -> StageResult:
        if one.cursor is None or '"after"' not in one.cursor:
            return one
        return msgspec.structs.replace(one, to=NotificationStatus.DONE, reason="it was the first step", cursor=None)


class OtherBlobs:
    """Blobs with a bug: what is not overridden is the real ones'."""

    def __init__(self, blobs: Blobs) -> None:
        self.real = blobs

    async def put_if_absent(self, path: str, content: bytes) -> bool:
        return await self.real.put_if_absent(path, content)

    async def get(self, path: str) -> bytes:
        return await self.real.get(path)

    async def find(self, path: str) -> bytes | None:
        return await self.real.find(path)


class PagesAreLost(OtherBlobs):
    """Says that the second page is stored, and forgets it; the manifest comes all the same."""

    async def put_if_absent(self, path: str, content: bytes) -> bool:
        return True if path.endswith("/1") else await self.real.put_if_absent(path, content)
