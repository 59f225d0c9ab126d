"""One-time codes: their data is erased when they are over, no sooner, and nobody sends them again after that (X-23)."""

from datetime import timedelta
from typing import Final

import msgspec
import pytest

from clarion.domain.call import Refused, Unknown
from clarion.domain.guard import JobEntry
from clarion.domain.notification import NotificationJob, NotificationScheduler, NotificationStatus
from clarion.domain.one_time_code import Erasure
from clarion.domain.outgoing import OutgoingMessage, OutgoingStatus
from clarion.errors import Gone
from clarion.testing.contracts.harness import MOVED_AT, StoreHarness, everything
from clarion.testing.contracts.pump import PAYLOAD, Pump
from clarion.testing.factories import notification_job, scheduler_of

MAY_STILL_BE_CALLED: Final = frozenset(
    {OutgoingStatus.CREATED, OutgoingStatus.RETRY_READY, OutgoingStatus.SENDING, OutgoingStatus.UNCERTAIN}
)
IS_WORKED_ON: Final = frozenset({NotificationStatus.READY, NotificationStatus.PROCESSING})


async def make_code(
    harness: StoreHarness, n: int = 1, *, work: NotificationStatus | None = NotificationStatus.DONE, **fields: object
) -> NotificationJob:
    """Store the job of a one-time code, and its pending row in a state; with None there is no such row."""
    what: dict[str, object] = {"payload": PAYLOAD, "template_key": "welcome", "template_version": 2}
    job = notification_job(n, **{**what, "one_time_code": True, **fields})
    pending = None if work is None else scheduler_of(job)
    (stored,) = await harness.store.ensure_notification_jobs(harness.tenant_id, [JobEntry(job=job, scheduler=pending)])
    if pending is not None and work is not NotificationStatus.READY:
        rows = await harness.rows(harness.tenant_id, NotificationScheduler)
        (row,) = [one for one in rows if one.key == pending.key]
        lease_until = MOVED_AT if work is NotificationStatus.PROCESSING else None
        moved = msgspec.structs.replace(row, status=work, due_at=None, lease_until=lease_until)
        await harness.overwrite(harness.tenant_id, moved)
    return stored.record


async def make_message(
    harness: StoreHarness, n: int, status: OutgoingStatus, *, to: int | None = None, **fields: object
) -> OutgoingMessage:
    """Store a message of the n-th job in a state."""
    message = await Pump(harness).message(n, to, **fields)
    if status is not OutgoingStatus.CREATED:
        message = msgspec.structs.replace(message, status=status)
        await harness.overwrite(harness.tenant_id, message)
    return message


async def has_data(harness: StoreHarness, n: int = 1) -> bool:
    """Tell whether the n-th job still has its data."""
    row_key = notification_job(n).row_key
    (job,) = [one for one in await harness.rows(harness.tenant_id, NotificationJob) if one.row_key == row_key]
    assert job.one_time_code
    return job.payload is not None


async def erase(harness: StoreHarness) -> int:
    """Erase what is over, of all jobs."""
    done = await harness.store.erase_codes(after=0, limit=100)
    assert done.next_after == 0
    return done.erased


class OneTimeCodeContract:
    """Erasing, and what comes after it."""

    @pytest.mark.parametrize("status", OutgoingStatus)
    async def test_data_is_erased_when_no_message_may_be_called_any_more(
        self, harness: StoreHarness, status: OutgoingStatus
    ) -> None:
        """One that is over does not let another one's data go."""
        await make_code(harness)
        await make_message(harness, 1, OutgoingStatus.DELIVERED, to=1)
        await make_message(harness, 1, status, to=2)
        kept = status in MAY_STILL_BE_CALLED
        assert (await erase(harness), await has_data(harness)) == (int(not kept), kept)
        assert await erase(harness) == 0

    @pytest.mark.parametrize("work", [*NotificationStatus, None])
    async def test_data_is_kept_while_the_job_is_worked_on(
        self, harness: StoreHarness, work: NotificationStatus | None
    ) -> None:
        """A job without its pending row will get a new one, and be worked on then."""
        await make_code(harness, work=work)
        kept = work is None or work in IS_WORKED_ON
        assert (await erase(harness), await has_data(harness)) == (int(not kept), kept)

    async def test_an_uncertain_message_keeps_it_as_long_as_it_may_be_sent_once_more(
        self, harness: StoreHarness
    ) -> None:
        """When its time is over nobody can send it again, so that nobody needs its data."""
        pump = Pump(harness)
        await make_code(harness)
        await pump.message(1, expires_at=await harness.now() + timedelta(seconds=300))
        await pump.record(Unknown(reason="lost"), await pump.claim_one())
        assert await erase(harness) == 0
        await harness.elapse(timedelta(seconds=301))
        assert (await erase(harness), await has_data(harness)) == (1, False)

    async def test_nothing_else_is_erased_or_changed(self, harness: StoreHarness) -> None:
        """Of its own row only the data, and of other jobs nothing."""
        await make_code(harness)
        await make_code(harness, 2, one_time_code=False)
        await make_message(harness, 1, OutgoingStatus.DELIVERED)
        before = await everything(harness)
        assert await erase(harness) == 1
        after = await everything(harness)
        changed = [name for name in before if before[name] != after[name]]
        assert changed == [NotificationJob.__name__]
        first, second = after[NotificationJob.__name__]
        codes = {one.row_key: one for one in before[NotificationJob.__name__] if isinstance(one, NotificationJob)}
        for job in (first, second):
            assert isinstance(job, NotificationJob)
            was = codes[job.row_key]
            assert job == (msgspec.structs.replace(was, payload=None) if was.one_time_code else was)

    async def test_many_that_are_not_over_do_not_keep_the_others_from_being_erased(self, harness: StoreHarness) -> None:
        """A call looks at so many jobs, says behind which to go on, and begins anew at the end."""
        jobs = [
            await make_code(harness, n, work=NotificationStatus.READY if n <= 2 else NotificationStatus.DONE)
            for n in range(1, 6)
        ]
        start, second, fourth = (jobs[0].id or 0) - 1, jobs[1].id or 0, jobs[3].id or 0
        store = harness.store
        assert await store.erase_codes(after=start, limit=2) == Erasure(0, second)
        assert await store.erase_codes(after=second, limit=2) == Erasure(2, fourth)
        assert await store.erase_codes(after=fourth, limit=2) == Erasure(1, 0)
        assert [await has_data(harness, n) for n in range(1, 6)] == [True, True, False, False, False]
        assert await store.erase_codes(after=start, limit=2) == Erasure(0, second)

    async def test_a_message_whose_data_was_erased_cannot_be_sent_again(self, harness: StoreHarness) -> None:
        """The refusal says why, and nothing is written, not even to the audit log."""
        pump = Pump(harness)
        await make_code(harness)
        message = await pump.message()
        await pump.record(Refused(reason="no"), await pump.claim_one())
        version = (await pump.seen(message.id)).message.version
        assert await erase(harness) == 1
        before, audit = await everything(harness), await harness.store.list_audit(harness.tenant_id, after=0, limit=10)
        with pytest.raises(Gone, match="it was a one-time code, and its data was erased when it was over: send a new"):
            await harness.store.retry_outgoing(
                harness.tenant_id, message.id or 0, version=version, actor="sam", reason="again"
            )
        assert await everything(harness) == before
        assert await harness.store.list_audit(harness.tenant_id, after=0, limit=10) == audit

    async def test_a_job_whose_data_was_erased_cannot_be_worked_on_again(self, harness: StoreHarness) -> None:
        """Its row stays failed."""
        job = await make_code(harness, work=NotificationStatus.FAILED)
        assert await erase(harness) == 1
        with pytest.raises(Gone, match="its data was erased"):
            await harness.store.retry_job(harness.tenant_id, job.guid, actor="sam", reason="again")
        (row,) = await harness.rows(harness.tenant_id, NotificationScheduler)
        assert row.status is NotificationStatus.FAILED

    async def test_what_is_sent_again_in_time_keeps_its_data(self, harness: StoreHarness) -> None:
        """The retry makes it wait for a call, and the claim has the data."""
        pump = Pump(harness)
        await make_code(harness)
        message = await pump.message()
        await pump.record(Refused(reason="no"), await pump.claim_one())
        version = (await pump.seen(message.id)).message.version
        assert await harness.store.retry_outgoing(
            harness.tenant_id, message.id or 0, version=version, actor="sam", reason="the number was mended"
        )
        assert await erase(harness) == 0
        assert (await pump.claim_one()).payload == PAYLOAD
