"""What is said beforehand is what happens: people, settings and suppressions by chance, asked about and then sent to.

Nothing here knows the rules. For each person, type, business unit and choice of channels it is asked what would be;
then the very same is sent through the real pipeline, and its rows, inbox lines and skips must be what was said.
"""

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import msgspec
import pytest

from clarion.catalog.people import ContactEntry, People, PersonEntry
from clarion.catalog.publish import Publisher
from clarion.client import wire, wire_explain
from clarion.domain import recipient
from clarion.domain.definition import ChannelPolicy
from clarion.domain.identity import Channel, Identity
from clarion.domain.notification import NotificationStatus
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.person import BusinessUnit, Contact
from clarion.domain.setting import SettingChange
from clarion.domain.skip import SkipRule
from clarion.domain.suppression import Cause, Suppression, scope_of
from clarion.operations import Operations
from clarion.testing.clock import SeededIds
from tests.integration.api_harness import ApiHarness, seeded_api
from tests.unit.pipeline_line import TENANT, TRACE

CHANNELS = (Channel.EMAIL, Channel.SMS, Channel.INBOX)
UNITS = (UUID(int=0x10), UUID(int=0x20))
PEOPLE = 8
MET = {
    None,
    *(SkipRule.TYPE_OFF, SkipRule.SETTING, SkipRule.UNKNOWN_PERSON, SkipRule.NO_ADDRESS, SkipRule.UNVERIFIED),
    *(SkipRule.RETIRED, SkipRule.SUPPRESSION, SkipRule.PREFERENCE, SkipRule.POLICY),
}
T = TypeVar("T")
Outcome = tuple[Channel, bool, SkipRule | None, str | None]


def write_type(folder: Path, key: str, policy: ChannelPolicy, *, may_unsubscribe: bool) -> None:
    place = folder / key
    place.mkdir()
    waits = "fallback_after_seconds = { sms = 60, email = 60 }" if policy is ChannelPolicy.CASCADE else ""
    (place / "definition.toml").write_text(
        f'key = "{key}"\ntitle = "{key}"\nchannels = ["sms", "email", "inbox"]\nchannel_policy = "{policy}"\n'
        f'category = "{key}"\nmay_unsubscribe = {str(may_unsubscribe).lower()}\n{waits}\n'
    )
    body = "<mjml><mj-body><mj-section><mj-column><mj-text>Hi</mj-text></mj-column></mj-section></mj-body></mjml>"
    files = {"sms": "Hi", "inbox": "Hi\nHi", "email.subject": "Hi", "email.text": "Hi", "email.mjml": body}
    for name, text in files.items():
        (place / f"{name}.liquid").write_text(text)


class Chance:
    """What is drawn by chance, the same for the same seed."""

    def __init__(self, seed: str) -> None:
        self._ids = SeededIds(seed)

    def below(self, most: int) -> int:
        return int(self._ids.new_guid().hex[:8], 16) % most

    def is_so(self, percent: int) -> bool:
        return self.below(100) < percent

    def one(self, items: Sequence[T]) -> T:
        return items[self.below(len(items))]

    def some(self, items: Sequence[T], *, least: int = 0, most: int) -> list[T]:
        """Draw some of these, each at most once, in any order."""
        left, wanted = list(items), least + self.below(most - least + 1)
        return [left.pop(self.below(len(left))) for _ in range(min(wanted, len(items)))]


class Town:
    """A tenant whose people, settings and suppressions are drawn by chance."""

    def __init__(self, api: ApiHarness, chance: Chance) -> None:
        self.api, self.chance = api, chance
        self.types: list[str] = []

    async def settle(self, folder: Path) -> None:
        for policy, may in product(ChannelPolicy, (True, False)):
            self.types.append(f"{policy}-{'news' if may else 'bill'}")
            write_type(folder, self.types[-1], policy, may_unsubscribe=may)
        store, line = self.api.memory, self.api.line
        await Publisher(catalog=store, renderer=line.renderer).publish(TENANT, folder=folder, actor="test")
        for unit in UNITS:
            await store.put_business_unit(TENANT, BusinessUnit(guid=unit, name=f"unit {unit}"))
        people = People(catalog=store, dispatcher=line.dispatcher, keyring=line.keyring)
        entries = [self.person(number) for number in range(PEOPLE - 1)]  # the last one is not known
        await people.put(TENANT, entries, trace=TRACE)
        await self.retire_some()
        await self.suppress_some()
        off = SettingChange(enabled=False)
        await store.put_setting(TENANT, self.chance.one(self.types), None, off, actor="test")
        for type_, place in product(self.types, (None, *UNITS)):
            if self.chance.is_so(60):
                await store.put_setting(TENANT, type_, place, self.setting(), actor="test")

    def person(self, number: int) -> PersonEntry:
        kinds = [(Channel.EMAIL, f"p{number}-{{}}@example.com"), (Channel.SMS, f"+1202555{number:02}0{{}}")]
        contacts = [
            ContactEntry(channel=channel, destination=form.format(n), verified=self.chance.is_so(70))
            for channel, form in kinds
            for n in range(self.chance.one([0, 1, 1, 2]))
        ]
        return PersonEntry(identity=Identity.user(f"p{number}"), name="P", contacts=tuple(contacts))

    def setting(self) -> SettingChange:
        fields: dict[str, Any] = {}
        if self.chance.is_so(30):
            fields["enabled"] = self.chance.one([True, False])
        if self.chance.is_so(50):
            fields["channels"] = tuple(self.chance.some(CHANNELS, least=1, most=3))
        return SettingChange(**fields)

    async def hashes(self) -> list[str]:
        keys = await self.api.line.keyring.get(TENANT)
        return [keys.hash_of(Identity.user(f"p{number}")) for number in range(PEOPLE)]

    async def contacts(self) -> list[tuple[str, Contact]]:
        found = await self.api.memory.find_recipients(TENANT, await self.hashes())
        return [(hashed, one) for hashed, person in sorted(found.items()) for one in person.contacts]

    async def retire_some(self) -> None:
        found = await self.api.memory.find_recipients(TENANT, await self.hashes())
        now = self.api.clock.now()
        for _, person in sorted(found.items()):
            contacts = tuple(
                msgspec.structs.replace(one, retired_at=now if self.chance.is_so(20) else None)
                for one in person.contacts
            )
            await self.api.memory.put_people(TENANT, [msgspec.structs.replace(person, contacts=contacts)])

    async def suppress_some(self) -> None:
        subjects = [*await self.hashes(), *(one.destination_index for _, one in await self.contacts())]
        scopes = [scope_of(one) for one in self.types]
        scopes += [scope_of(one, channel) for one in self.types for channel in CHANNELS]
        items = [
            Suppression(subject=subject, scope=scope, cause=self.chance.one(list(Cause)))
            for subject in subjects
            for scope in [*self.chance.some(scopes, most=4), *([scope_of()] if self.chance.is_so(12) else [])]
        ]
        await self.api.memory.put_suppressions(TENANT, items, actor="test")


@pytest.mark.parametrize("seed", range(3))
async def test_what_is_said_beforehand_is_what_the_pipeline_does(seed: int, tmp_path: Path) -> None:
    api, chance = await seeded_api(), Chance(f"town {seed}")
    town = Town(api, chance)
    await town.settle(tmp_path)
    operations = Operations(api.platform, wake=lambda _topic: None)
    cases = [
        (f"p{number}", type_, unit, tuple(chance.some(CHANNELS, most=3)))
        for number, type_, unit in product(range(PEOPLE), town.types, (None, *UNITS))
    ]
    said: list[wire_explain.Would] = []
    for user, type_, unit, channels in cases:
        asked = wire_explain.WouldRequest(
            type=type_, recipient=wire.Recipient(user=user), business_unit=unit, channels=channels
        )
        said.append(await operations.explain.would(TENANT, asked, whole=True))
    sent = [
        await api.line.send(type_, wire.Recipient(user=user), data={}, business_unit=unit, channels=channels)
        for user, type_, unit, channels in cases
    ]
    await api.line.drain()
    seen: set[SkipRule | None] = set()
    for case, would, answer in zip(cases, said, sent, strict=True):
        timeline = await api.line.timeline(answer)
        assert timeline.scheduler is not None
        if would.skipped is not None:
            assert timeline.scheduler.status is NotificationStatus.SKIPPED, case
            assert (timeline.scheduler.rule, timeline.scheduler.reason) == (would.skipped.rule, would.skipped.reason)
            assert (timeline.outgoing, timeline.inbox, timeline.job.recipients) == ((), (), None)
            seen.add(would.skipped.rule)
            continue
        assert timeline.scheduler.status is NotificationStatus.DONE, case
        (frozen,) = recipient.decode(timeline.job.recipients or "")
        happened: list[Outcome] = [
            (one.channel, one.skipped is None, one.rule, one.skipped) for one in frozen.decisions
        ]
        assert [(one.channel, one.goes, one.rule, one.reason) for one in would.channels] == happened, case
        goes = [one for one in would.channels if one.goes]
        shown = await operations.notifications.find(TENANT, answer.job_id, whole=True)
        assert shown is not None
        rows = sorted((row.channel, row.destination) for row in shown.messages)
        assert rows == sorted((one.channel, one.destination) for one in goes if one.channel is not Channel.INBOX), case
        assert {row.status for row in shown.messages} <= {OutgoingStatus.SENT_TO_PROVIDER}, case
        assert len(shown.inbox) == sum(one.channel is Channel.INBOX for one in goes), case
        seen |= {one.rule for one in would.channels}
    assert seen >= MET, "the town had nobody for some of the rules: draw another one"
