"""Rehearsal: the next days played through by the real rules, on a copy of the tenant, so that nothing is touched.

One moment of the store is copied into SQLite in memory. There a clock is set from one due time to the next, and the
workers' own code hands over what is due, follows it up, and makes the rows of messages, with blobs in memory. It ends
there: no provider is called, and the installation's own store and blobs are only read. Sources that a plugin provides
are asked of the plugin, as they are now, and so is for whom they are.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final, assert_never

import msgspec

from clarion.bootstrap import Platform, due_worker, open_memory
from clarion.catalog.library import Library
from clarion.client.wire_rehearsal import Rehearsal, Rehearsed, RehearsedLine, RehearsedTotals
from clarion.dispatch import DeliveryDispatcher
from clarion.domain.automation import AutomationScheduler, AutomationStatus
from clarion.domain.due import DueOutcome, read_result
from clarion.domain.identity import Channel
from clarion.domain.occurrence_why import why_in_words
from clarion.domain.recipient import FrozenRecipient
from clarion.domain.skip import SkipRule
from clarion.operations.upcoming import settings_of
from clarion.pipeline.generate import Generate
from clarion.pipeline.schedule import Schedule
from clarion.ports.automation import Standing
from clarion.producers.direct import DirectSends
from clarion.producers.records import Records
from clarion.sealing.contents import MessagingContents
from clarion.sealing.recipients import RecipientSets

ROWS_MAX: Final = 300_000
"""Of the copy: 285,000 rows of people with addresses were measured to take 200 MB and four seconds."""

OCCURRENCES_MAX: Final = 20_000
"""That may fall due: their jobs and messages stay in memory beside the copy."""

MESSAGES_MAX: Final = 200_000

LINES_MAX: Final = 1000
"""Occurrences that are shown one by one; the totals count all."""

_PAGE: Final = 500

Step = Callable[[], Awaitable[int]]


class VirtualClock:
    """A clock that stands until it is set; it goes only forward."""

    def __init__(self, start_at: datetime) -> None:
        """Start here."""
        self._start_at = self._at = start_at

    def now(self) -> datetime:
        """Return the instant that it stands at."""
        return self._at

    def monotonic(self) -> float:
        """Return how far it was set forward."""
        return (self._at - self._start_at).total_seconds()

    def boot(self) -> str:
        """Name no run of a machine: there is none."""
        return ""

    def set(self, at: datetime) -> None:
        """Let the time pass until an instant."""
        self._at = max(self._at, at)


async def rehearse(platform: Platform, tenant_id: str, *, days: int) -> Rehearsal:
    """Play so many days through, and say what would be sent."""
    from_at = await platform.store.now()
    until = from_at + timedelta(days=days)
    tables = await platform.store.copy_tenant(tenant_id, until=until, rows_max=ROWS_MAX)
    clock = VirtualClock(from_at)
    async with open_memory(clock) as (store, blobs):
        await store.paste_tenant(tables)
        keyring = platform.keyring.over(store)
        dispatcher = DeliveryDispatcher(store=store, blobs=blobs, keyring=keyring)
        templates = Library(store)
        stage = msgspec.structs.replace(
            platform,
            store=store,
            blobs=blobs,
            keyring=keyring,
            dispatcher=dispatcher,
            recipient_sets=RecipientSets(blobs=blobs, keyring=keyring),
            contents=MessagingContents(blobs=blobs, keyring=keyring),
            templates=templates,
            sends=DirectSends(dispatcher=dispatcher, templates=templates, renderer=platform.renderer),
            sources=platform.sources.over(Records(store, keyring)),
            accounts={},
            providers={},
            clock=clock,
        )
        return await _Play(stage, tenant_id, clock=clock).run(from_at=from_at, until=until)


class _Play:
    """One rehearsal on its stage."""

    def __init__(self, platform: Platform, tenant_id: str, *, clock: VirtualClock) -> None:
        self._store = platform.store
        self._sets = platform.recipient_sets
        self._tenant_id = tenant_id
        self._clock = clock
        self._lines: list[RehearsedLine] = []
        self._outcomes: Counter[Rehearsed] = Counter()
        self._messages: Counter[Channel] = Counter()
        self._not_sent: Counter[SkipRule] = Counter()
        self._after: tuple[datetime, int] | None = None
        generate = Generate(
            queue=platform.store,
            facts=platform.store,
            templates=platform.templates,
            renderer=platform.renderer,
            dispatcher=platform.dispatcher,
            keyring=platform.keyring,
            sets=platform.recipient_sets,
            contents=platform.contents,
            clock=platform.clock,
            public_url=platform.settings.public_url,
        )
        self._steps: Sequence[Step] = (
            partial(platform.store.rescue_due, limit=_PAGE),
            due_worker(platform).step,
            Schedule(queue=platform.store, facts=platform.store).step,
            generate.step,
        )

    async def run(self, *, from_at: datetime, until: datetime) -> Rehearsal:
        """Go from one due time to the next, and tell what came of each."""
        held_before = {row.scheduler_key for row in await self._left()}
        while True:
            while any([await step() for step in self._steps]):
                pass
            await self._tell_ended()
            stopped = self._why_stop()
            following = await self._store.list_occurrences(
                self._tenant_id, standing=Standing.WAITING, until=until, limit=1
            )
            if stopped is not None or not following:
                break
            self._clock.set(following[0].due_at)
        left = [row for row in await self._left() if row.scheduler_key not in held_before]
        await self._tell(left)
        return Rehearsal(
            from_at=from_at,
            until_at=until if stopped is None else self._clock.now(),
            stopped=stopped,
            totals=RehearsedTotals(
                occurrences=dict(self._outcomes), messages=dict(self._messages), not_sent=dict(self._not_sent)
            ),
            items=tuple(self._lines),
        )

    async def _left(self) -> Sequence[AutomationScheduler]:
        """List what is on hold or has failed, as many as are shown."""
        found: list[AutomationScheduler] = []
        for standing in (Standing.HELD, Standing.FAILED):
            found += await self._store.list_occurrences(self._tenant_id, standing=standing, limit=LINES_MAX)
        return found

    async def _tell_ended(self) -> None:
        """Tell what has ended since the last look: in the order in which it was due."""
        while True:
            rows = await self._store.list_occurrences(
                self._tenant_id, standing=Standing.ENDED, after=self._after, limit=_PAGE
            )
            if not rows:
                return
            self._after = rows[-1].due_at, rows[-1].id or 0
            await self._tell(rows)

    async def _tell(self, rows: Sequence[AutomationScheduler]) -> None:
        names = await settings_of(self._store, self._tenant_id, rows)
        for row in rows:
            setting = names.get(row.setting)
            line = await self._line(row, None if setting is None else setting.name)
            self._outcomes[line.outcome] += 1
            self._messages.update(line.messages)
            self._not_sent.update(line.not_sent)
            if len(self._lines) < LINES_MAX:
                self._lines.append(line)

    async def _line(self, row: AutomationScheduler, setting_name: str | None) -> RehearsedLine:
        """Say what one occurrence came to; where it was handed over, by the recipients that were frozen for it."""
        result = read_result(row.dispatch_result)
        recipients, messages, not_sent = 0, Counter[Channel](), Counter[SkipRule]()
        job = None if result is None or result.job is None else result.job
        found = None if job is None else await self._store.find_job(self._tenant_id, job)
        after = ""
        while found is not None and (part := await self._sets.part(self._tenant_id, found, after=after, limit=_PAGE)):
            after = part[-1].recipient_id_hash
            recipients += len(part)
            _count(part, messages, not_sent)
        outcome = _outcome(row, result.outcome if result is not None else None)
        return RehearsedLine(
            key=row.scheduler_key,
            type=row.automation_type,
            due_at=row.scheduled_at,
            local_date=row.local_date,
            local_time=row.local_time,
            zone=row.tz_id,
            notification_type=row.notification_type,
            setting_name=setting_name,
            source_type=row.source_type,
            source=row.source,
            why=why_in_words(row),
            outcome=outcome,
            reason=None if result is None else result.reason,
            failure=row.failure_reason if outcome in (Rehearsed.HELD, Rehearsed.FAILED) else None,
            recipients=recipients,
            messages=dict(messages),
            not_sent=dict(not_sent),
        )

    def _why_stop(self) -> str | None:
        """Say why it goes no further, if it does not: what was made so far is in memory."""
        if sum(self._outcomes.values()) > OCCURRENCES_MAX:
            return f"more than {OCCURRENCES_MAX} occurrences fell due"
        if sum(self._messages.values()) > MESSAGES_MAX:
            return f"more than {MESSAGES_MAX} messages were made"
        return None


def _count(part: Sequence[FrozenRecipient], messages: Counter[Channel], not_sent: Counter[SkipRule]) -> None:
    """Count what was decided for recipients."""
    for one in part:
        for decision in one.decisions:
            if decision.goes_in or decision.goes_out:
                messages[decision.channel] += 1
            else:
                not_sent[decision.rule or SkipRule.OTHER] += 1


def _outcome(row: AutomationScheduler, outcome: DueOutcome | None) -> Rehearsed:
    match row.status:
        case AutomationStatus.COMPLETED:
            return Rehearsed.SKIPPED if outcome is DueOutcome.SKIPPED else Rehearsed.HANDED_OVER
        case AutomationStatus.FAILED:
            return Rehearsed.FAILED
        case AutomationStatus.DEACTIVATED | AutomationStatus.CANCELED:
            return Rehearsed.DEACTIVATED
        case AutomationStatus.PENDING | AutomationStatus.PROCESSING:
            return Rehearsed.HELD if row.on_support_hold else Rehearsed.WAITS
        case _:
            assert_never(row.status)
