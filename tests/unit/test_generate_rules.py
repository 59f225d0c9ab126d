"""What a setting and a preference leave out when a notification's rows are made."""

import pytest

from clarion.client.wire import Recipient
from clarion.domain import recipient
from clarion.domain.identity import Channel, Identity
from clarion.domain.setting import SettingChange
from clarion.domain.skip import SkipRule
from clarion.domain.suppression import Cause, Suppression
from clarion.testing.clock import ManualClock
from clarion.testing.store import SqliteInMemory
from tests.unit.pipeline_line import TENANT, Line, Scripted


@pytest.fixture
async def line() -> Line:
    clock = ManualClock()
    line = Line(SqliteInMemory(clock), clock, Scripted())
    await line.seed()
    return line


async def test_whom_a_setting_or_a_preference_leaves_out_is_skipped_in_the_frozen_set_already(line: Line) -> None:
    """No row is made for them, and what changes afterwards changes nothing about who is in the set."""
    keys = await line.keyring.get(TENANT)
    sam = keys.hash_of(Identity.user("1"))
    await line.store.put_suppressions(
        TENANT, [Suppression(subject=sam, scope="news:email", cause=Cause.PREFERENCE)], actor="sam"
    )
    change = SettingChange(channels=(Channel.EMAIL,))
    await line.store.put_setting(TENANT, "welcome", None, change, actor="admin")
    news = await line.send("newsletter", Recipient(user="1"), data={"edition": "May", "intro": "Hello.", "stories": []})
    welcome = await line.send("welcome", Recipient(user="1"))
    await line.queue()
    await line.store.lift_suppressions(TENANT, [(sam, "news:email")], actor="sam")
    await line.drain()
    decided = {}
    for sent in (news, welcome):
        timeline = await line.timeline(sent)
        (one,) = recipient.decode(timeline.job.recipients or "")
        decided[sent.job_id] = [(at.channel, at.rule) for at in one.decisions]
        assert len(timeline.inbox) == 0
    assert decided[news.job_id] == [(Channel.EMAIL, SkipRule.PREFERENCE)]
    assert decided[welcome.job_id] == [(Channel.EMAIL, None), (Channel.INBOX, SkipRule.SETTING)]
    assert [call.channel for call in line.provider.calls] == [Channel.EMAIL]


@pytest.mark.parametrize(
    "scope, cause, rule",
    [("*", Cause.BOUNCE, SkipRule.SUPPRESSION), ("news", Cause.UNSUBSCRIBE, SkipRule.PREFERENCE)],
)
async def test_a_bare_address_that_is_suppressed_is_skipped_in_the_frozen_set_already(
    line: Line, scope: str, cause: Cause, rule: SkipRule
) -> None:
    """By what it said itself, as who opts out by the link in a mail that was sent to nobody but an address."""
    keys = await line.keyring.get(TENANT)
    itself = keys.hash_of(Identity.address("sam@example.com"))
    await line.store.put_suppressions(TENANT, [Suppression(subject=itself, scope=scope, cause=cause)], actor="sam")
    data = {"edition": "May", "intro": "Hello.", "stories": []}
    sent = [await line.send("newsletter", to, data=data) for to in ("sam@example.com", "kim@example.com")]
    await line.drain()
    decided = []
    for one in sent:
        (frozen,) = recipient.decode((await line.timeline(one)).job.recipients or "")
        decided.append([(at.channel, at.rule) for at in frozen.decisions])
    assert decided == [[(Channel.EMAIL, rule)], [(Channel.EMAIL, None)]]
    assert [call.destination for call in line.provider.calls] == ["kim@example.com"]
