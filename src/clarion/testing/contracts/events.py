"""Events: accepted once, claimed with the tenants taking turns, and handled until they are done or have failed."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import msgspec
import pytest

from clarion.domain.ensured import Outcome
from clarion.domain.entity_event import EntityEvent, EventStatus
from clarion.domain.support import SupportKind
from clarion.errors import IllegalMove
from clarion.ports.source import EventClaim, EventEnd
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.contracts.pump import near
from clarion.testing.factories import SOURCE_AT, entity_event, guid

LEASE: Final = timedelta(minutes=1)


async def tell(harness: StoreHarness, *numbers: int, tenant_id: str = "") -> list[EntityEvent]:
    """Tell of events."""
    events = [entity_event(n) for n in numbers]
    answers = await harness.store.ensure_events(tenant_id or harness.tenant_id, events)
    return [one.record for one in answers]


async def claim(harness: StoreHarness, *, limit: int = 100) -> list[EventClaim]:
    """Claim what waits."""
    return await harness.store.claim_events(limit=limit, lease=LEASE)


async def finish(harness: StoreHarness, claim: EventClaim, to: EventStatus, **fields: object) -> bool:
    """End the handling of an event."""
    end = EventEnd(tenant_id=claim.tenant_id, event_id=claim.event.id or 0, version=claim.event.version, to=to)
    moved = await harness.store.finish_events([msgspec.structs.replace(end, **fields)])
    return moved == {claim.event.id}


async def stored(harness: StoreHarness, n: int = 1) -> EntityEvent:
    """Find an event that is there."""
    found = await harness.store.find_event(harness.tenant_id, guid(n, "event"))
    assert found is not None
    return found


def told(claims: Sequence[EventClaim]) -> list[tuple[str, int]]:
    """Say whose events were claimed, and which."""
    numbers = {guid(n, "event"): n for n in range(100)}
    return [(one.tenant_id, numbers[one.event.event_guid]) for one in claims]


class EventContract:
    """Events that wait to be handled."""

    async def test_an_event_waits_is_claimed_once_and_is_done(self, harness: StoreHarness) -> None:
        """Under a lease by the store's clock; its version is the token, and a second end changes nothing."""
        await tell(harness, 1)
        waiting = await stored(harness)
        assert waiting.status is EventStatus.READY
        assert waiting.due_at is not None
        assert near(waiting.due_at, await harness.now())
        (one,) = await claim(harness)
        assert one.tenant_id == harness.tenant_id
        assert one.event == await stored(harness)
        assert (one.event.status, one.event.version) == (EventStatus.PROCESSING, waiting.version + 1)
        assert one.event.lease_until is not None
        assert near(one.event.lease_until, await harness.now() + LEASE)
        assert await claim(harness) == []
        assert await finish(harness, one, EventStatus.DONE, metrics='{"ensured": 2}')
        assert not await finish(harness, one, EventStatus.FAILED)
        done = await stored(harness)
        assert (done.status, done.metrics, done.lease_until) == (EventStatus.DONE, '{"ensured": 2}', None)
        assert await harness.store.list_support_cases(harness.tenant_id) == []
        (again,) = await harness.store.ensure_events(harness.tenant_id, [entity_event(1)])
        assert (again.outcome, again.record) == (Outcome.FOUND, done)
        assert await claim(harness) == []

    async def test_events_of_one_tenant_are_claimed_in_the_order_in_which_they_came(
        self, harness: StoreHarness
    ) -> None:
        """Those of one set in the order asked."""
        await tell(harness, 3, 1, 2)
        await harness.elapse(timedelta(seconds=1))
        await tell(harness, 5, 4)
        mine = harness.tenant_id
        assert told(await claim(harness, limit=2)) == [(mine, 3), (mine, 1)]
        assert told(await claim(harness)) == [(mine, 2), (mine, 5), (mine, 4)]

    async def test_tenants_take_turns(self, harness: StoreHarness) -> None:
        """However many events of one were there before the first of another, and however few are claimed at once."""
        busy, quiet, third = (f"{harness.tenant_id}-{name}" for name in ("busy", "quiet", "third"))
        await tell(harness, *range(1, 30), tenant_id=busy)
        await tell(harness, 31, 32, tenant_id=quiet)
        await tell(harness, 41, tenant_id=third)
        first = told(await claim(harness, limit=6))
        assert first == [(busy, 1), (quiet, 31), (third, 41), (busy, 2), (quiet, 32), (busy, 3)]
        await tell(harness, 33, 34, tenant_id=quiet)
        one_by_one = [told(await claim(harness, limit=1))[0][0] for _ in range(5)]
        assert one_by_one[:4] in ([busy, quiet] * 2, [quiet, busy] * 2)
        assert one_by_one[4] == busy

    async def test_what_fails_for_now_comes_again_later(self, harness: StoreHarness) -> None:
        """After its delay, counted, and with the reason."""
        await tell(harness, 1)
        (one,) = await claim(harness)
        assert await finish(harness, one, EventStatus.READY, delay=timedelta(minutes=5), reason="the plugin is away")
        waiting = await stored(harness)
        assert (waiting.retry_count, waiting.reason) == (1, "the plugin is away")
        await harness.elapse(timedelta(minutes=4))
        assert await claim(harness) == []
        await harness.elapse(timedelta(minutes=2))
        assert told(await claim(harness)) == [(harness.tenant_id, 1)]

    async def test_what_fails_for_good_opens_a_case_and_is_retried_on_a_persons_word(
        self, harness: StoreHarness
    ) -> None:
        """One case, however often; the retry is audited, and what has not failed cannot be retried."""
        await tell(harness, 1, 2)
        one, other = await claim(harness)
        assert await finish(harness, one, EventStatus.FAILED, reason="\0no such type" + "x" * 9000)
        (case,) = await harness.store.list_support_cases(harness.tenant_id)
        assert (case.kind, case.record, case.correlation_id) == (SupportKind.DEAD_LETTER, "EntityEvent", "request-1")
        failed = await stored(harness)
        assert failed.reason is not None
        assert failed.reason.startswith("no such type")
        retry = harness.store.retry_event
        assert not await retry(harness.tenant_id, guid(2, "event"), actor="sam", reason="mended")
        assert not await retry(f"{harness.tenant_id}-2", guid(1, "event"), actor="sam", reason="mended")
        assert await retry(harness.tenant_id, guid(1, "event"), actor="sam", reason="mended")
        (entry,) = await harness.store.list_audit(harness.tenant_id)
        assert (entry.actor, entry.act, entry.reason) == ("sam", "retry", "mended")
        assert entry.subject == f"event {guid(1, 'event')}"
        (again,) = await claim(harness)
        assert (again.event.event_guid, again.event.retry_count) == (guid(1, "event"), 0)
        assert await finish(harness, other, EventStatus.DONE)

    async def test_a_lost_workers_events_come_back_until_they_are_given_up(self, harness: StoreHarness) -> None:
        """I-23: an event of which every worker dies opens a case; an old claim ends nothing any more."""
        await tell(harness, 1)
        (lost,) = await claim(harness)
        assert await harness.store.rescue_events(limit=10, rescues_max=1) == 0
        await harness.elapse(LEASE + timedelta(seconds=1))
        assert await harness.store.rescue_events(limit=10, rescues_max=1) == 1
        (again,) = await claim(harness)
        assert again.event.rescue_count == 1
        assert not await finish(harness, lost, EventStatus.DONE)
        await harness.elapse(LEASE + timedelta(seconds=1))
        assert await harness.store.rescue_events(limit=10, rescues_max=1) == 1
        assert (await stored(harness)).status is EventStatus.FAILED
        (case,) = await harness.store.list_support_cases(harness.tenant_id)
        assert case.record == "EntityEvent"
        assert await claim(harness) == []

    async def test_an_event_of_another_tenant_is_not_ended(self, harness: StoreHarness) -> None:
        """By whosever id."""
        await tell(harness, 1)
        (one,) = await claim(harness)
        assert not await finish(harness, msgspec.structs.replace(one, tenant_id="another"), EventStatus.DONE)
        with pytest.raises(IllegalMove):
            await finish(harness, one, EventStatus.PROCESSING)
        assert await harness.store.finish_events([]) == set()

    async def test_events_are_listed_the_newest_first(self, harness: StoreHarness) -> None:
        """Of all, of one entity and in one state, page by page; of one moment the last that came first."""
        store, tenant_id = harness.store, harness.tenant_id
        entity = {"entity_type": "order", "entity_guid": guid(1, "order")}
        events = [
            entity_event(1),
            entity_event(2, **entity),
            entity_event(3, occurred_at=SOURCE_AT - timedelta(days=1)),
            entity_event(4, **entity, occurred_at=SOURCE_AT + timedelta(days=1)),
        ]
        ids = {one.record.id: n for n, one in enumerate(await store.ensure_events(tenant_id, events), 1)}

        async def pages(**named: object) -> list[int]:
            found: list[EntityEvent] = []
            while page := await store.list_events(
                tenant_id,
                after=None if not found else (found[-1].occurred_at, found[-1].id or 0),
                limit=2,
                **named,  # type: ignore[arg-type]  # of several types
            ):
                found += page
            return [ids[one.id] for one in found]

        (first,) = await claim(harness, limit=1)
        await finish(harness, first, EventStatus.FAILED)
        of_entity = ("order", guid(1, "order"))
        assert await pages() == [4, 2, 1, 3]
        assert await pages(entity=of_entity) == [4, 2, 1]
        assert await pages(status=EventStatus.FAILED) == [1]
        assert await pages(status=EventStatus.READY) == [4, 2, 3]
        assert await pages(entity=of_entity, status=EventStatus.READY) == [4, 2]
        assert await pages(entity=("invoice", guid(1, "order"))) == []
