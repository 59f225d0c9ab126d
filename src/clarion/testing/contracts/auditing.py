"""Acts of people: an act and its entry are one transaction, and a changed log is noticed (X-31).

What each act changes is tested with the capability that it belongs to; here, that the log agrees with it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple
from uuid import UUID

import pytest

from clarion.domain.audience import Addressee
from clarion.domain.audit import broken_link
from clarion.domain.call import Accepted, Refused
from clarion.domain.claim import Gate
from clarion.domain.ensured import Outcome
from clarion.domain.identity import Channel
from clarion.domain.seal import Purpose
from clarion.domain.setting import SettingChange
from clarion.errors import InvalidInput
from clarion.ports.catalog import AuditEntry, NewTemplate
from clarion.ports.insights import PAGE_MAX
from clarion.ports.store import Store
from clarion.testing.contracts.catalog import api_key
from clarion.testing.contracts.harness import StoreHarness
from clarion.testing.contracts.pump import Pump
from clarion.testing.contracts.support_cases import support_case
from clarion.testing.factories import TEXT, guid

UNIT: Final = guid(1, "unit")

Do = Callable[[Store, str], Awaitable[bool]]
"""Does something at a store under an actor's name, and tells whether it happened."""


class Deed(NamedTuple):
    """An act that can be done once, and how the log then words it."""

    do: Do
    act: str
    subject: str
    reason: str | None = None
    details: str = "{}"


async def creating(harness: StoreHarness) -> Deed:
    """Make the tenant; whose keys it has tells who did."""

    async def do(store: Store, actor: str) -> bool:
        keys = {(Purpose.DATA, 1): actor.encode()}
        return await store.ensure_tenant(harness.tenant_id, keys, actor=actor) == keys

    return Deed(do, "create", f"tenant {harness.tenant_id}")


async def publishing(harness: StoreHarness) -> Deed:
    """Publish a first version."""
    return Deed(_publish(harness), "publish", "template welcome", details='{"content_hash":"h1:a","version":1}')


def _publish(harness: StoreHarness) -> Do:
    async def do(store: Store, actor: str) -> bool:
        template = NewTemplate(template_key="welcome", content_hash="h1:a", bundle="{}")
        (answer,) = await store.publish_templates(harness.tenant_id, [template], actor=actor)
        return answer.outcome is Outcome.CREATED

    return do


async def disabling(harness: StoreHarness) -> Deed:
    """Switch a type off."""
    return Deed(_switch(harness, "code", enabled=False), "disable", "type code")


async def enabling(harness: StoreHarness) -> Deed:
    """Switch a type on again."""
    await _switch(harness, "invoice", enabled=False)(harness.store, "ada")
    return Deed(_switch(harness, "invoice", enabled=True), "enable", "type invoice")


async def setting(harness: StoreHarness) -> Deed:
    """Say who gets a type in a business unit, and how."""
    teachers = SettingChange(enabled=True, recipients=(Addressee(role="teacher"),), channels=(Channel.SMS,))
    details = '{"channels":["sms"],"enabled":true,"recipients":[{"role":"teacher"}]}'
    return Deed(_set(harness, "report", UNIT, teachers), "set", f"setting report of unit {UNIT}", details=details)


async def clearing(harness: StoreHarness) -> Deed:
    """Say nothing any more."""
    await _set(harness, "meeting", None, SettingChange(channels=(Channel.SMS,)))(harness.store, "ada")
    return Deed(_set(harness, "meeting", None, SettingChange(channels=None)), "clear", "setting meeting")


def _set(harness: StoreHarness, event_type: str, unit: UUID | None, change: SettingChange) -> Do:
    return lambda store, actor: store.put_setting(harness.tenant_id, event_type, unit, change, actor=actor)


def _switch(harness: StoreHarness, event_type: str, *, enabled: bool) -> Do:
    return lambda store, actor: store.set_type_enabled(harness.tenant_id, event_type, enabled=enabled, actor=actor)


async def minting(harness: StoreHarness) -> Deed:
    """Make a key."""
    key = api_key(1, harness.tenant_id)
    return Deed(lambda store, actor: store.put_api_key(key, actor=actor), "mint", f"key {key.key_id}")


async def revoking(harness: StoreHarness) -> Deed:
    """End a key."""
    key = api_key(2, harness.tenant_id)
    await harness.store.put_api_key(key, actor="ada")
    return Deed(_revoke(harness.tenant_id, key.key_id), "revoke", f"key {key.key_id}")


def _revoke(tenant_id: str, key_id: str) -> Do:
    return lambda store, actor: store.revoke_api_key(tenant_id, key_id, actor=actor)


async def resolving(harness: StoreHarness) -> Deed:
    """Close a support case."""
    case = support_case()
    await harness.store.open_support_cases(harness.tenant_id, [case])
    return Deed(_resolve(harness), "resolve", f"case {case.case_id}", reason=TEXT)


def _resolve(harness: StoreHarness, n: int = 1) -> Do:
    return lambda store, actor: store.resolve_support_case(
        harness.tenant_id, support_case(n).case_id, actor=actor, resolution=TEXT
    )


async def retrying(harness: StoreHarness) -> Deed:
    """Have a message sent again that was refused."""
    outgoing_id, version = await _refused(harness)
    return Deed(_retry(harness, outgoing_id, version), "retry", f"outgoing {outgoing_id}", reason=TEXT)


async def _refused(harness: StoreHarness) -> tuple[int, int]:
    pump = Pump(harness)
    message = await pump.message(1)
    await pump.record(Refused(reason="no"), await pump.claim_one())
    return message.id or 0, (await pump.seen(message.id)).message.version


def _retry(harness: StoreHarness, outgoing_id: int, version: int) -> Do:
    return lambda store, actor: store.retry_outgoing(
        harness.tenant_id, outgoing_id, version=version, actor=actor, reason=TEXT
    )


async def canceling(harness: StoreHarness) -> Deed:
    """Cancel a job of which one message is on its way and one still waits."""
    pump = Pump(harness)
    await pump.message(2, to=2)
    await pump.claim_one()
    await pump.message(2, to=3)
    job = await pump.job(2)
    return Deed(_cancel(harness, job.guid), "cancel", f"job {job.guid}")


def _cancel(harness: StoreHarness, job_guid: UUID) -> Do:
    return lambda store, actor: store.cancel_job(harness.tenant_id, job_guid, actor=actor)


async def pausing(harness: StoreHarness) -> Deed:
    """Pause a broadcast."""
    return Deed(_set_gate(harness, "spring", Gate.PAUSED), "pause", "broadcast spring")


async def opening(harness: StoreHarness) -> Deed:
    """Open a broadcast again."""
    await _set_gate(harness, "summer", Gate.PAUSED)(harness.store, "ada")
    return Deed(_set_gate(harness, "summer", Gate.OPEN), "open", "broadcast summer")


async def closing(harness: StoreHarness) -> Deed:
    """Cancel a broadcast, whatever its name."""
    return Deed(_set_gate(harness, TEXT, Gate.CANCELED), "cancel", f"broadcast {TEXT}")


def _set_gate(harness: StoreHarness, broadcast: str, gate: Gate) -> Do:
    return lambda store, actor: store.set_gate(harness.tenant_id, broadcast, gate, actor=actor)


Arrange = Callable[[StoreHarness], Awaitable[Deed]]

DEEDS: Final[tuple[Arrange, ...]] = (
    creating,
    publishing,
    disabling,
    enabling,
    setting,
    clearing,
    minting,
    revoking,
    resolving,
    retrying,
    canceling,
    pausing,
    opening,
    closing,
)
"""Every act that is audited; each arranges all that it needs."""


async def known_content(harness: StoreHarness) -> Do:
    """Publish what is published."""
    await _publish(harness)(harness.store, "ada")
    return _publish(harness)


async def type_that_is_on(harness: StoreHarness) -> Do:
    """Switch on what nobody has switched off."""
    return _switch(harness, "code", enabled=True)


async def key_of_nobody(harness: StoreHarness) -> Do:
    """Revoke a key that never was."""
    return _revoke(harness.tenant_id, "nobody's")


async def key_of_another(harness: StoreHarness) -> Do:
    """Revoke another tenant's key."""
    key = api_key(1, harness.tenant_id)
    await harness.store.put_api_key(key, actor="ada")
    return _revoke(f"{harness.tenant_id}-2", key.key_id)


async def case_of_nobody(harness: StoreHarness) -> Do:
    """Resolve a case that never was."""
    return _resolve(harness, 9)


async def older_version(harness: StoreHarness) -> Do:
    """Retry a message as it was before."""
    outgoing_id, version = await _refused(harness)
    return _retry(harness, outgoing_id, version - 1)


async def message_on_its_way(harness: StoreHarness) -> Do:
    """Retry a message that waits to be sent."""
    message = await Pump(harness).message(1)
    return _retry(harness, message.id or 0, message.version)


async def job_that_was_sent(harness: StoreHarness) -> Do:
    """Cancel a job of which everything was sent."""
    pump = Pump(harness)
    await pump.message(1)
    await pump.record(Accepted(), await pump.claim_one())
    return _cancel(harness, (await pump.job(1)).guid)


async def job_of_nobody(harness: StoreHarness) -> Do:
    """Cancel a job that never was."""
    return _cancel(harness, guid(99))


async def broadcast_that_is_open(harness: StoreHarness) -> Do:
    """Open a broadcast that nobody has paused."""
    await Pump(harness, broadcast="spring").message(1)
    return _set_gate(harness, "spring", Gate.OPEN)


async def broadcast_of_nobody(harness: StoreHarness) -> Do:
    """Open a broadcast that never was."""
    return _set_gate(harness, "spring", Gate.OPEN)


IN_VAIN: Final[tuple[Callable[[StoreHarness], Awaitable[Do]], ...]] = (
    known_content,
    type_that_is_on,
    key_of_nobody,
    key_of_another,
    case_of_nobody,
    older_version,
    message_on_its_way,
    job_that_was_sent,
    job_of_nobody,
    broadcast_that_is_open,
    broadcast_of_nobody,
)
"""Acts that find nothing to do."""


async def log_of(harness: StoreHarness, *, after: int = 0) -> list[AuditEntry]:
    """Read the tenant's log behind an entry."""
    return list(await harness.store.list_audit(harness.tenant_id, after=after, limit=PAGE_MAX))


def worded(entry: AuditEntry) -> tuple[str, str, str, str | None, str]:
    """Give an entry without what the log itself adds."""
    return entry.actor, entry.act, entry.subject, entry.reason, entry.details


class ActContract:
    """An act and its entry."""

    @pytest.mark.parametrize("arrange", DEEDS)
    async def test_an_act_has_one_entry_and_its_repeat_none(self, harness: StoreHarness, arrange: Arrange) -> None:
        """Who, what, to what, why: the log tells what was done and not what was asked for."""
        deed = await arrange(harness)
        before = len(await log_of(harness))
        assert [await deed.do(harness.store, who) for who in ("sam", "kim")] == [True, False]
        (entry,) = await log_of(harness, after=before)
        assert worded(entry) == ("sam", *deed[1:])
        assert broken_link(harness.tenant_id, await log_of(harness)) is None

    @pytest.mark.parametrize("arrange", DEEDS)
    @pytest.mark.parametrize("nobody", ["", " "], ids=["empty", "blank"])
    async def test_an_act_that_cannot_be_written_down_is_not_done(
        self, harness: StoreHarness, arrange: Arrange, nobody: str
    ) -> None:
        """Without an actor neither the act nor its entry is stored, and somebody with a name can still do it."""
        deed = await arrange(harness)
        before = len(await log_of(harness))
        with pytest.raises(InvalidInput, match="actor"):
            await deed.do(harness.store, nobody)
        assert await log_of(harness, after=before) == []
        assert await deed.do(harness.store, "sam")
        assert [worded(entry) for entry in await log_of(harness, after=before)] == [("sam", *deed[1:])]

    @pytest.mark.parametrize("arrange", IN_VAIN)
    async def test_an_act_that_changes_nothing_has_no_entry(
        self, harness: StoreHarness, arrange: Callable[[StoreHarness], Awaitable[Do]]
    ) -> None:
        """Neither in its own tenant's log nor in another's."""
        do = await arrange(harness)
        before = len(await log_of(harness))
        assert not await do(harness.store, "sam")
        assert await log_of(harness, after=before) == []
        assert await harness.store.list_audit(f"{harness.tenant_id}-2") == []

    @pytest.mark.parametrize("arrange", DEEDS)
    async def test_the_same_act_of_two_people_at_once_is_the_act_of_one(
        self, harness: StoreHarness, arrange: Arrange
    ) -> None:
        """The store tells one of them that it happened, and the log names that one."""
        deed = await arrange(harness)
        before = len(await log_of(harness))
        people = ("sam", "kim")
        done = dict(zip(people, await asyncio.gather(*(deed.do(harness.store, who) for who in people)), strict=True))
        (entry,) = await log_of(harness, after=before)
        assert done == {person: person == entry.actor for person in people}
        assert broken_link(harness.tenant_id, await log_of(harness)) is None

    async def test_different_acts_at_once_make_one_chain(self, harness: StoreHarness) -> None:
        """No entry is lost, and no two entries follow the same one."""
        deeds = [await arrange(harness) for arrange in DEEDS]
        before = len(await log_of(harness))
        assert all(await asyncio.gather(*(deed.do(harness.store, "sam") for deed in deeds)))
        log = await log_of(harness)
        assert [entry.seq for entry in log] == list(range(1, before + len(deeds) + 1))
        assert broken_link(harness.tenant_id, log) is None
        assert {worded(entry)[1:] for entry in log[before:]} == {deed[1:] for deed in deeds}
