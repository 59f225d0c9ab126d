"""Whom rows are made for, and how many of them at once: settings, inboxes alone, nobody, and slow merging."""

from typing import Any
from uuid import UUID

import pytest

from clarion.adapters.renderers.renderer import LiquidRenderer
from clarion.client.wire import Recipient, SendAnswer, SendRequest
from clarion.dispatch.request import FromEvent, JobRequest
from clarion.domain.audience import Addressee
from clarion.domain.identity import Channel, Identity
from clarion.domain.notification import NotificationStatus
from clarion.domain.recipient import Target
from clarion.domain.setting import SettingChange
from clarion.domain.skip import SkipRule
from clarion.errors import InvalidInput
from clarion.operations.notification import answer_of
from clarion.pipeline.generate import pages, underway, whom
from clarion.pipeline.generate.plan import NOT_MERGED_FOR
from clarion.ports.renderer import Merged, NotMerged
from clarion.testing.clock import ManualClock
from clarion.testing.store import SqliteInMemory
from tests.integration.sqlite_look import connection_of
from tests.unit.crowd import EVERYBODY, gather, hash_of
from tests.unit.large_set import (
    INLINE,
    PAGE,
    PEOPLE,
    STEP,
    TO,
    accepted,
    frozen_of,
    generated,
    made,
    open_line,
    status_of,
)
from tests.unit.pipeline_line import TENANT, TRACE, Line, Scripted


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make everything large that has more than a handful of people."""
    monkeypatch.setattr(pages, "PAGE_SIZE", PAGE)
    monkeypatch.setattr(pages, "STEP_SIZE", STEP)
    monkeypatch.setattr(whom, "INLINE_MAX", INLINE)
    monkeypatch.setattr(underway, "PATIENCE", 60)  # so that no step ends before its work


async def test_lines_that_take_too_long_for_a_step_are_merged_in_smaller_ones() -> None:
    """Each profile is read by its own line; of the three of a step only two are merged in time."""

    class Slow(LiquidRenderer):
        async def render(self, *given: Any, **named: Any) -> list[Merged]:
            merged = list(await super().render(*given, **named))
            return [one if place < 2 else NotMerged("no time was left") for place, one in enumerate(merged)]

    clock = ManualClock()
    line = Line(SqliteInMemory(clock), clock, Scripted(), renderer=Slow())
    await line.seed()
    gather(line.store, range(PEOPLE))
    connection_of(line.store).execute("UPDATE person SET locale = 'x-' || person_id, tz_id = 'Zone/' || person_id")
    await accepted(line)
    for _ in range(30):
        await generated(line)
        clock.advance(NOT_MERGED_FOR)
    assert status_of(line)[0] == "Done"
    assert len(made(line)["inbox"]) == PEOPLE


async def test_whom_the_settings_name_may_be_a_large_set_too() -> None:
    line = await open_line()
    gather(line.store, range(PEOPLE))
    named = SettingChange(recipients=(Addressee(group=EVERYBODY), Addressee(role="head")))
    await line.store.put_setting(TENANT, "welcome", None, named, actor="sam")
    sent = await line.accept(SendRequest(type="welcome", data={"name": "Sam"}))
    await line.queue()
    assert [one.recipient_id_hash for one in await frozen_of(line, sent)] == sorted(map(hash_of, range(PEOPLE)))
    assert len(made(line)["inbox"]) == PEOPLE


async def test_a_send_for_inboxes_only_makes_no_message_for_a_provider() -> None:
    """The path of what is shown and never sent; for a few and for many."""
    line = await open_line()
    gather(line.store, range(PEOPLE))
    for to in (TO, Recipient(user="1")):
        await line.send(to=to, channels=(Channel.INBOX,))
    await line.queue()
    assert made(line)["outgoing"] == []
    assert len(made(line)["inbox"]) == PEOPLE + 1


async def test_a_group_without_anybody_is_skipped_with_the_rule() -> None:
    line = await open_line()
    sent = await line.send(to=TO)
    await line.queue()
    scheduler = (await line.timeline(sent)).scheduler
    assert scheduler is not None
    assert (scheduler.status, scheduler.rule) == (NotificationStatus.SKIPPED, SkipRule.NOBODY)
    assert "no group that it names has members" in (scheduler.reason or "")


async def test_somebody_who_is_not_known_gets_no_inbox_row_and_the_reason_says_so() -> None:
    line = await open_line()
    sent = await line.send(to=Recipient(user="nobody"))
    await line.drain()
    timeline = await line.timeline(sent)
    assert (timeline.inbox, timeline.outgoing) == ((), ())
    assert timeline.scheduler is not None
    assert timeline.scheduler.reason == "1 recipient, 0 messages, 2 skipped"


async def test_a_produced_job_goes_to_its_own_addressees_and_not_to_whom_the_settings_name() -> None:
    """A reminder brings whom it is for; whoever the settings of its type name is for other sends."""
    line = await open_line()
    gather(line.store, range(PEOPLE))
    named = SettingChange(recipients=(Addressee(role="head"),))
    await line.store.put_setting(TENANT, "welcome", None, named, actor="sam")
    mine = await produced(line, 1, addressees=(Addressee(group=EVERYBODY),))
    nobody = await produced(line, 2, addressees=(Addressee(role="stranger"),))
    await line.queue()
    assert [one.recipient_id_hash for one in await frozen_of(line, mine)] == sorted(map(hash_of, range(PEOPLE)))
    scheduler = (await line.timeline(nobody)).scheduler
    assert scheduler is not None
    assert (scheduler.status, scheduler.rule) == (NotificationStatus.SKIPPED, SkipRule.NOBODY)
    assert scheduler.reason == "nobody to send it to: it is for role:stranger, and nobody is there"


async def test_a_produced_job_names_up_to_a_thousand_people() -> None:
    """A caller at the door names 20; a producer of ours has them from a directory."""
    line = await open_line()
    people = tuple(Target(identity=Identity.user(f"{n:0199}")) for n in range(1000))
    sent = await produced(line, 1, to=people)
    await line.queue()
    assert len(await frozen_of(line, sent)) == 1000
    with pytest.raises(InvalidInput) as refused:
        await produced(line, 2, to=(*people, Target(identity=Identity.user("one more"))))
    assert refused.value.field == "to"


async def produced(line: Line, n: int, **given: Any) -> SendAnswer:
    """Have a producer of ours ask for a notification."""
    request = JobRequest(
        origin=FromEvent(event_type="invoice.changed", event_guid=UUID(int=n)),
        event_type="welcome",
        source_at=await line.store.now(),
        entity=("invoice", UUID(int=100 + n)),
        data={"name": "Sam"},
        trace=TRACE,
        **given,
    )
    (answer,) = await line.dispatcher.ensure_notification_job(TENANT, [request])
    return answer_of(answer)
