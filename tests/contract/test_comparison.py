"""The comparison of two stores must be able to fail: bugs planted in one of two equal stores, each of them seen."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import msgspec
import pytest

from clarion.domain.call import Accepted
from clarion.domain.claim import CallResult
from clarion.domain.planning import SourcePlan
from clarion.ports.automation import DueEnd
from clarion.ports.store import Store
from clarion.testing.contracts.comparison import (
    ENSURES,
    FALLEN_DUE,
    INBOXES,
    JOBS,
    KNOWN,
    MESSAGES,
    TOLD,
    WORKS,
    Compared,
    Work,
)
from clarion.testing.contracts.side import Operation
from clarion.testing.store import StandIn

EXAMPLES = 50
"""As many as the comparison of messages runs at every commit: a bug that shows in none of them would not be found."""

MINUTE = timedelta(minutes=1)
Method = Callable[..., Awaitable[Any]]


@cache
def examples(work: Work) -> list[tuple[Operation, ...]]:
    return work.examples(EXAMPLES)


class Planted:
    """A store with one method that does something else."""

    def __init__(self, store: Store, method: str, bug: Callable[..., Awaitable[Any]]) -> None:
        self._store = store
        self._method = method
        self._bug = bug

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if name != self._method:
            return found

        async def method(*args: Any, **named: Any) -> Any:
            return await self._bug(found, *args, **named)

        return method


async def later(record: Method, results: Sequence[CallResult], **named: Any) -> Any:
    """Let a retry wait a minute longer."""
    return await record([msgspec.structs.replace(one, delay=one.delay + MINUTE) for one in results], **named)


async def longer(claim: Method, *args: Any, lease: timedelta, **named: Any) -> Any:
    """Hold a claim a second longer."""
    return await claim(*args, lease=lease + timedelta(seconds=1), **named)


async def backwards(method: Method, *args: Any, **named: Any) -> Any:
    """Answer in reverse order."""
    return (await method(*args, **named))[::-1]


async def given_backwards(method: Method, tenant_id: str, items: Sequence[Any], **named: Any) -> Any:
    """Take a set in reverse order, and answer as asked."""
    answer = await method(tenant_id, items[::-1], **named)
    return answer[::-1] if isinstance(answer, list) else answer


async def one_by_one(method: Method, *, limit: int, **named: Any) -> Any:
    """Do less than was asked."""
    return await method(limit=min(limit, 1), **named)


async def without_latency(record: Method, results: Sequence[CallResult], **named: Any) -> Any:
    """Forget how long calls took."""
    return await record([msgspec.structs.replace(one, latency_ms=None) for one in results], **named)


async def never_final(record: Method, results: Sequence[CallResult], **named: Any) -> Any:
    """Give nothing up."""
    return await record([msgspec.structs.replace(one, final=False) for one in results], **named)


async def one_at_a_time(record: Method, results: Sequence[CallResult], **named: Any) -> None:
    """Record a set in reverse order, which leaves every row as it is and another message as the last of a case."""
    for result in results[::-1]:
        await record([result], **named)


async def optimistic(record: Method, results: Sequence[CallResult], **named: Any) -> Any:
    """Take a deferral for an acceptance where a provider was named."""
    return await record([msgspec.structs.replace(one, outcome=Accepted()) for one in results], **named)


async def uncounted(settle: Method, settlements: Sequence[Any], **named: Any) -> Any:
    """Count no replay as a duplicate."""
    return await settle([msgspec.structs.replace(one, counts_as_duplicate=False) for one in settlements], **named)


async def by_another(method: Method, *args: Any, actor: str, **named: Any) -> Any:
    """Do it in another's name."""
    return await method(*args, actor=f"{actor}, or somebody else", **named)


async def nameless(find: Method, *args: Any) -> Any:
    """Show a case without what it is about."""
    case = await find(*args)
    return None if case is None else msgspec.structs.replace(case, details="{}")


async def uncorrelated(find: Method, *args: Any) -> Any:
    """Show a case of another request."""
    case = await find(*args)
    return None if case is None else msgspec.structs.replace(case, correlation_id="another")


async def half(apply: Method, tenant_id: str, plans: Sequence[SourcePlan]) -> Any:
    """Ensure what a plan wants, and let go on what it ends."""
    return await apply(tenant_id, [msgspec.structs.replace(one, deactivate=()) for one in plans])


async def unfollowed(finish: Method, ends: Sequence[DueEnd]) -> Any:
    """Forget what follows an occurrence."""
    return await finish([msgspec.structs.replace(one, next=None) for one in ends])


async def nothing(_: Method, *__: Any, **___: Any) -> int:
    """Do nothing."""
    return 0


BUGS = [
    (MESSAGES, "record_outgoing", later),
    (MESSAGES, "record_outgoing", without_latency),
    (MESSAGES, "record_outgoing", never_final),
    (MESSAGES, "record_outgoing", one_at_a_time),
    (MESSAGES, "record_outgoing", optimistic),
    (MESSAGES, "claim_outgoing", longer),
    (MESSAGES, "claim_outgoing", backwards),
    (MESSAGES, "find_uncertain", backwards),
    (MESSAGES, "settle_uncertain", uncounted),
    (MESSAGES, "keep_events", given_backwards),
    (MESSAGES, "apply_events", one_by_one),
    (MESSAGES, "rescue_outgoing", nothing),
    (MESSAGES, "sweep_canceled", nothing),
    (MESSAGES, "cancel_job", by_another),
    (MESSAGES, "find_support_case", nameless),
    (MESSAGES, "find_support_case", uncorrelated),
    (MESSAGES, "ensure_outgoing_messages", given_backwards),
    (JOBS, "ensure_notification_jobs", given_backwards),
    (JOBS, "claim_stage", longer),
    (JOBS, "claim_stage", backwards),
    (JOBS, "rescue_stages", nothing),
    (JOBS, "erase_codes", nothing),
    (ENSURES, "ensure_outgoing_messages", given_backwards),
    (KNOWN, "publish_templates", by_another),
    (KNOWN, "list_api_keys", backwards),
    (INBOXES, "sweep_inboxes", nothing),
    (INBOXES, "list_inbox", backwards),
    (TOLD, "put_sources", by_another),
    (TOLD, "claim_events", longer),
    (TOLD, "list_reminders", backwards),
    (FALLEN_DUE, "apply_plans", half),
    (FALLEN_DUE, "claim_due", longer),
    (FALLEN_DUE, "claim_due", backwards),
    (FALLEN_DUE, "finish_due", unfollowed),
    (FALLEN_DUE, "rescue_due", nothing),
    (FALLEN_DUE, "release_occurrence", by_another),
    (FALLEN_DUE, "list_occurrences", backwards),
]


@pytest.mark.parametrize(
    "work, method, bug", BUGS, ids=[f"{method}-{getattr(bug, '__name__', '')}" for _, method, bug in BUGS]
)
async def test_a_planted_bug_is_seen(work: Work, method: str, bug: Callable[..., Awaitable[Any]]) -> None:
    harness = StandIn()
    sound = harness.store
    harness.store = Planted(sound, method, bug)  # type: ignore[assignment]  # has all methods of a store
    compared = await Compared.open(harness, within=timedelta())
    try:
        for example in examples(work):
            if await compared.run(example) is not None:
                return
    finally:
        await compared.close()
        await sound.close()
    pytest.fail("nothing was seen")


@pytest.mark.parametrize("work", WORKS.values(), ids=WORKS)
async def test_two_stores_that_are_the_same_do_not_differ(work: Work) -> None:
    harness = StandIn()
    compared = await Compared.open(harness, within=timedelta())
    try:
        for example in examples(work)[:20]:
            assert await compared.run(example) is None
    finally:
        await compared.close()
        await harness.store.close()


class Running(StandIn):
    """A store whose clock goes on by itself, a little whenever somebody looks."""

    async def now(self) -> datetime:
        self.clock.advance(timedelta(milliseconds=10))
        return self.clock.now()


@pytest.mark.parametrize("wrong", [False, True])
async def test_a_store_with_a_clock_of_its_own_is_compared_to_the_second(wrong: bool) -> None:
    harness = Running()
    sound = harness.store
    if wrong:
        harness.store = Planted(sound, "record_outgoing", later)  # type: ignore[assignment]  # has all its methods
    compared = await Compared.open(harness)
    try:
        seen = [await compared.run(example) is not None for example in examples(MESSAGES)[:8]]
    finally:
        await compared.close()
        await sound.close()
    assert any(seen) is wrong
