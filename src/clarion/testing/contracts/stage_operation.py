"""Operations on pending jobs that chance can put together: accepted in sets, claimed, finished, rescued, retried.

As those of `queue_operation`, they name jobs and claims by small numbers and can run on two stores.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

import msgspec
from hypothesis import strategies as st

from clarion.domain.claim import StageClaim, StageResult
from clarion.domain.guard import JobEntry
from clarion.domain.identity import Lane
from clarion.domain.notification import NotificationStatus, Stage
from clarion.domain.recipient import FrozenSet, RecipientJob
from clarion.domain.skip import SkipRule
from clarion.errors import Gone
from clarion.testing.contracts.pump import LEASE
from clarion.testing.contracts.queue_operation import Cancel, Elapse, Resolve
from clarion.testing.contracts.side import Operation, Side
from clarion.testing.factories import address_version, guid, notification_job, outgoing_item, scheduler_of, user_message

RESCUES_MAX: Final = 1
ENDINGS: Final[tuple[Mapping[str, object], ...]] = (
    {"to": NotificationStatus.READY, "stage": Stage.GENERATE},
    {"to": NotificationStatus.READY, "stage": Stage.GENERATE, "delay": timedelta(seconds=40)},
    {"to": NotificationStatus.READY, "stage": Stage.SCHEDULE, "is_retry": True, "delay": timedelta(seconds=40)},
    {"to": NotificationStatus.READY, "stage": Stage.GENERATE, "cursor": "step 1"},
    {"to": NotificationStatus.DONE, "stage": Stage.GENERATE},
    {"to": NotificationStatus.SKIPPED, "stage": Stage.SCHEDULE, "reason": "switched off", "rule": SkipRule.TYPE_OFF},
    {"to": NotificationStatus.FAILED, "stage": Stage.SCHEDULE, "reason": "no template", "diagnostics": "{}"},
    {"to": NotificationStatus.FAILED, "stage": Stage.GENERATE, "reason": "no recipients"},
)
"""How a stage can end."""


class Accept(msgspec.Struct, frozen=True):
    """Ensure jobs with their pending rows, in this order: (number, lane, due in so many seconds).

    Every second job is a one-time code, and every third tells of a content.
    """

    jobs: tuple[tuple[int, Lane, int], ...]

    async def run(self, side: Side) -> object:
        """Ensure the set."""
        now = await side.harness.now()
        entries = []
        for n, lane, due_in in self.jobs:
            told = str(guid(n, "content")) if n % 3 == 0 else None
            what = {"template_key": "welcome", "one_time_code": n % 2 == 0, "messaging_job": told}
            job = notification_job(n, payload=b"sealed", **what)
            due_at = now + timedelta(seconds=due_in) if due_in else None
            pending = msgspec.structs.replace(scheduler_of(job), lane=lane, due_at=due_at)
            entries.append(JobEntry(job=job, scheduler=pending))
        return await side.store.ensure_notification_jobs(side.tenant_id, entries)


class ClaimStage(msgspec.Struct, frozen=True):
    """Claim what is due of a stage."""

    stage: Stage
    limit: int

    async def run(self, side: Side) -> object:
        """Claim and remember it."""
        claimed = await side.store.claim_stage(self.stage, lanes=tuple(Lane), limit=self.limit, lease=LEASE)
        side.stages += claimed
        return claimed


class FinishStage(msgspec.Struct, frozen=True):
    """Finish some of the claims so far, each counted from the latest, in one set."""

    endings: tuple[tuple[int, int], ...]

    async def run(self, side: Side) -> object:
        """Finish those of which there is such a claim."""
        results = [_result(one, ENDINGS[how]) for back, how in self.endings if (one := _claim(side, back)) is not None]
        moved = await side.store.finish_stage(results)
        return [one.scheduler for one in side.stages if one.scheduler.id in moved]


class Generate(msgspec.Struct, frozen=True):
    """Make rows under one of the claims so far: outgoing ones, lines in inboxes, and notes of who has the job."""

    back: int
    to: tuple[int, ...]

    async def run(self, side: Side) -> object:
        """Ensure them, if there is such a claim; whether it still stands, the store knows."""
        one = _claim(side, self.back)
        if one is None:
            return None
        hold = (one.scheduler.id or 0, one.scheduler.version)
        versions = [address_version(n) for n in self.to]
        addresses = await side.store.ensure_address_versions(side.tenant_id, versions)
        items = [outgoing_item(one.job, address.record, hold=hold) for address in addresses]
        lines = [user_message(n, job_row_key=one.job.row_key) for n in self.to]
        noted = [
            RecipientJob(recipient_id_hash=address.record.recipient_id_hash, job_key="noted", job_id=one.job.id or 0)
            for address in addresses
        ]
        return (
            await side.store.note_recipients(side.tenant_id, hold, noted),
            await side.store.ensure_outgoing_messages(side.tenant_id, items),
            await side.store.ensure_user_messages(side.tenant_id, lines, holds={line.key: hold for line in lines}),
        )


class Freeze(msgspec.Struct, frozen=True):
    """Freeze the recipients of one of the claims so far."""

    back: int
    content: int

    async def run(self, side: Side) -> object:
        """Freeze them, if there is such a claim."""
        one = _claim(side, self.back)
        if one is None:
            return None
        hashes = [f"{n:032x}" for n in range(self.content)]
        given = FrozenSet(job_id=one.job.id or 0, job_key="key", text=f"[{self.content}]", recipients=hashes)
        frozen = await side.store.freeze_recipients(side.tenant_id, [given])
        return list(frozen.values())


class RescueStages(msgspec.Struct, frozen=True):
    """Rescue pending jobs that workers left behind."""

    limit: int

    async def run(self, side: Side) -> object:
        """Rescue as many as that."""
        return await side.store.rescue_stages(limit=self.limit, rescues_max=RESCUES_MAX)


class RetryJob(msgspec.Struct, frozen=True):
    """Have a failed job tried again on a person's word."""

    job: int

    async def run(self, side: Side) -> object:
        """Retry it; a one-time code whose data was erased is refused."""
        guid = notification_job(self.job).guid
        try:
            return await side.store.retry_job(side.tenant_id, guid, actor="sam", reason="mended")
        except Gone as refused:
            return str(refused)


class EraseCodes(msgspec.Struct, frozen=True):
    """Erase the data of one-time codes that are over."""

    async def run(self, side: Side) -> None:
        """Look at all of them; how many there are, those of other tenants included, is not compared."""
        await side.store.erase_codes(after=0, limit=1000)


def _claim(side: Side, back: int) -> StageClaim | None:
    """Find a claim, counted from the latest."""
    return side.stages[-1 - back] if back < len(side.stages) else None


def _result(claim: StageClaim, ending: Mapping[str, object]) -> StageResult:
    """Make the result of a claim."""
    plain = StageResult(
        scheduler_id=claim.scheduler.id or 0,
        version=claim.scheduler.version,
        to=NotificationStatus.DONE,
        stage=Stage.GENERATE,
    )
    return msgspec.structs.replace(plain, **ending)


_BACK: Final = st.sampled_from((0, 0, 0, 1, 2, 3))
_DRAWN: Final[tuple[tuple[int, st.SearchStrategy[Operation]], ...]] = (
    (
        5,
        st.builds(
            Accept,
            jobs=st.lists(
                st.tuples(st.integers(1, 6), st.sampled_from(tuple(Lane)), st.sampled_from((0, 0, 0, 45))),
                min_size=1,
                max_size=4,
            ).map(tuple),
        ),
    ),
    (8, st.builds(ClaimStage, stage=st.sampled_from(tuple(Stage)), limit=st.sampled_from((1, 2, 100)))),
    (
        8,
        st.builds(
            FinishStage,
            endings=st.lists(
                st.tuples(_BACK, st.integers(0, len(ENDINGS) - 1)), min_size=1, max_size=3, unique_by=lambda one: one[0]
            ).map(tuple),
        ),
    ),
    (3, st.builds(Generate, back=_BACK, to=st.lists(st.integers(1, 3), max_size=3, unique=True).map(tuple))),
    (2, st.builds(Freeze, back=_BACK, content=st.integers(1, 2))),
    (4, st.builds(Elapse, seconds=st.sampled_from((1, 41, 61, 61)))),
    (3, st.builds(RescueStages, limit=st.sampled_from((1, 100)))),
    (2, st.builds(RetryJob, job=st.integers(1, 6))),
    (1, st.builds(Resolve, place=st.integers(0, 9))),
    (1, st.builds(Cancel, job=st.integers(1, 6))),
    (2, st.builds(EraseCodes)),
)
STAGE_OPERATIONS: Final = st.sampled_from(
    [place for place, (times, _) in enumerate(_DRAWN) for _ in range(times)]
).flatmap(lambda place: _DRAWN[place][1])
