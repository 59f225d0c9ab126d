"""The rows of jobs, from their frozen recipients: inbox lines, and the messages that go to providers.

Ensures both through dispatch, under the claim of their job: one that was canceled or taken over gets none.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from clarion.dispatch import DeliveryDispatcher
from clarion.dispatch.message import outgoing_item
from clarion.dispatch.request import InboxEntry
from clarion.domain.claim import StageResult
from clarion.domain.outgoing import OutgoingItem
from clarion.domain.recipient import FrozenRecipient
from clarion.domain.seal import TenantKeys
from clarion.domain.suppression import optional_category
from clarion.pipeline.generate.inbox import Inbox, Sets
from clarion.pipeline.generate.plan import Plan
from clarion.ports.ensure import in_sets


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """The rows for recipients of a job; `unmade` inbox lines are missing, and the first of them said why.

    They are those of the recipients up to `until`, where not all lines were made in time.
    """

    entries: Sequence[InboxEntry]
    items: Sequence[OutgoingItem]
    unmade: int
    why: str
    until: str | None

    @property
    def number(self) -> int:
        """How many rows there are."""
        return len(self.entries) + len(self.items)


class Rows:
    """Makes rows and stores them."""

    def __init__(self, *, inbox: Inbox, dispatcher: DeliveryDispatcher) -> None:
        """Have inbox lines merged by this inbox, and store through this dispatcher."""
        self._inbox = inbox
        self._dispatcher = dispatcher

    async def make(self, keys: TenantKeys, plans: Sequence[Plan], sets: Sets) -> Mapping[int, Made | StageResult]:
        """Make the rows of jobs for these recipients of theirs; or say of a job why it waits."""
        inbox = await self._inbox.make(keys, plans, sets)
        made: dict[int, Made | StageResult] = {}
        for plan in plans:
            lines = inbox[plan.job_id]
            made[plan.job_id] = (
                lines
                if isinstance(lines, StageResult)
                else Made(
                    entries=lines.entries,
                    items=_outgoing(keys.tenant_id, plan, _up_to(lines.until, sets[plan.job_id])),
                    unmade=lines.unmade,
                    why=lines.why,
                    until=lines.until,
                )
            )
        return made

    async def store(self, tenant_id: str, made: Iterable[Made]) -> None:
        """Ensure the rows of jobs, all together."""
        rows = list(made)
        for entries in in_sets([entry for one in rows for entry in one.entries]):
            await self._dispatcher.ensure_user_messages(tenant_id, entries)
        for items in in_sets([item for one in rows for item in one.items]):
            await self._dispatcher.ensure_outgoing_messages(tenant_id, items)


def unmade_in_words(number: int, why: str) -> str:
    """Say how many inbox lines could not be made, and why the first could not."""
    return f"{number} inbox {'line' if number == 1 else 'lines'} not made: {why}"


def _up_to(until: str | None, recipients: Sequence[FrozenRecipient]) -> Sequence[FrozenRecipient]:
    return recipients if until is None else [one for one in recipients if one.recipient_id_hash <= until]


def _outgoing(tenant_id: str, plan: Plan, recipients: Sequence[FrozenRecipient]) -> list[OutgoingItem]:
    """Make the outgoing rows of a job for some of its recipients."""
    claim, definition, expires_at = plan.claim, plan.bundle.definition, plan.expires_at
    return [
        outgoing_item(
            tenant_id,
            claim.job,
            recipient_id_hash=one.recipient_id_hash,
            channel=decision.channel,
            address_id=decision.address_id,
            lane=claim.scheduler.lane,
            hold=claim.hold,
            expires_at=expires_at,
            uncertain_policy=definition.uncertain_policy,
            attempts_max=definition.attempts_max,
            person_version_id=one.person_version_id,
            locale=one.locale,
            tz_id=one.tz_id,
            category=optional_category(definition.category, may_unsubscribe=definition.may_unsubscribe),
        )
        for one in recipients
        for decision in one.decisions
        if decision.address_id is not None and decision.goes_out
    ]
