"""Accounts as an operator sets them: what they are called, which channels they serve, and when they are left alone."""

import asyncio
from collections.abc import Collection, Mapping
from pathlib import Path

import msgspec
import pytest

from clarion.adapters.providers.smtp import open_provider as open_smtp
from clarion.bootstrap import load_settings, open_platform, prepare
from clarion.domain.call import Call, CallOutcome, Misconfigured
from clarion.domain.claim import ClaimedMessage, Discovery, LowMark
from clarion.domain.identity import Channel
from clarion.errors import InvalidInput
from clarion.ports.provider import Limited
from clarion.sandbox.provider import SandboxProvider
from clarion.testing.clock import ManualClock
from clarion.testing.store import SqliteInMemory
from clarion.workers.supervisor import Supervisor
from clarion.workers.wake_up import Topic, WakeUp
from tests.integration.api_harness import ApiHarness
from tests.integration.test_program import clarion
from tests.unit.pipeline_line import Scripted

EVERY = (Channel.EMAIL, Channel.SMS, Channel.PUSH, Channel.CHAT)
SMTP = "smtp://mail.example.com?from=a@example.com"


async def accounts_of(folder: Path, providers: str) -> Mapping[str, str]:
    """Open an installation as the program would, and say which account serves which channel."""
    settings = load_settings(
        {"CLARION_HOME": str(folder), "CLARION_PROVIDERS": providers.replace("FOLDER", str(folder))}
    )
    await prepare(settings)
    async with open_platform(settings) as platform:
        assert set(platform.accounts.values()) == set(platform.providers)
        return platform.accounts


@pytest.mark.parametrize(
    "providers, accounts",
    [
        ("", dict.fromkeys(EVERY, "sandbox")),
        ("*=sandbox://FOLDER/s.db", dict.fromkeys(EVERY, "sandbox")),
        ("email=sandbox://FOLDER/s.db", {Channel.EMAIL: "sandbox"}),
        ("sms=sandbox://FOLDER/s.db,*=sandbox://FOLDER/s.db", dict.fromkeys(EVERY, "sandbox")),
        ("*=null://", dict.fromkeys(EVERY, "null")),
        ("*=sandbox+http://127.0.0.1:9", dict.fromkeys(EVERY, "sandbox+http-127.0.0.1")),
        (f"*={SMTP}", {Channel.EMAIL: "smtp-mail.example.com"}),
        (f"*={SMTP},sms=null://", {Channel.EMAIL: "smtp-mail.example.com", Channel.SMS: "null"}),
        (f"email={SMTP}&name=School-1,*=null://", dict.fromkeys(EVERY, "null") | {Channel.EMAIL: "School-1"}),
        ("email=sandbox://FOLDER/s.db?name=a&dedupe=24h", {Channel.EMAIL: "a"}),
        ("email=sandbox://FOLDER/s.db?name=smtp-mail_relay", {Channel.EMAIL: "smtp-mail_relay"}),
        ("email=null://?name=sandbox+http-127.0.0.1", {Channel.EMAIL: "sandbox+http-127.0.0.1"}),
        (
            "email=sandbox://FOLDER/a.db?name=sandbox-email,sms=sandbox://FOLDER/b.db",
            {Channel.EMAIL: "sandbox-email", Channel.SMS: "sandbox"},
        ),
    ],
)
async def test_an_account_is_called_after_its_url_and_serves_what_it_can(
    tmp_path: Path, providers: str, accounts: Mapping[str, str]
) -> None:
    assert await accounts_of(tmp_path, providers) == accounts


@pytest.mark.parametrize(
    "providers, says",
    [
        (",", "it names no provider"),
        (f"sms={SMTP}", "the account 'smtp-mail.example.com' cannot carry sms"),
        (f"email={SMTP},push={SMTP}", "the account 'smtp-mail.example.com' cannot carry push"),
        ("email=sandbox://FOLDER/a.db,sms=sandbox://FOLDER/b.db", "two accounts are called 'sandbox'"),
        (f"email={SMTP}&name=null,sms=null://", "two accounts are called 'null'"),
        ("*=null://?name=", "the option name"),
        ("*=null://?name=a/b", "the option name"),
        (f"*=null://?name={'a' * 254}", "the option name"),
        ("*=null://?name=..", "the option name"),
        ("*=null://?name=a&name=b", "the option name"),
        ("email=smtp://ann:hunter2@[::1?from=a@example.com", "not well-formed"),
        ("smtp://ann:hunter2@mail.example.com", "an entry does not name a channel and its provider"),
        ("smtp://ann:hunter2@mail.example.com?from=a@example.com", "an entry does not name a channel"),
        ("email=null://,ann:hunter2@mail.example.com=x", "an entry does not name a channel"),
        ("hunter2", "an entry does not name a channel"),
        ("emial=null://", "'emial' does not name a channel"),
        ("email=", "'email' does not name a channel and its provider"),
        ("email=ann:hunter2@mail.example.com", "no adapter is installed for the URL scheme 'ann'"),
        ("email=user=ann password=hunter2", "it is no URL"),
    ],
)
async def test_accounts_that_cannot_be_told_apart_or_carry_nothing_are_refused(
    tmp_path: Path, providers: str, says: str
) -> None:
    with pytest.raises(InvalidInput, match=says) as caught:
        await accounts_of(tmp_path, providers)
    assert (caught.value.field, "hunter2" in str(caught.value)) == ("CLARION_PROVIDERS", False)


async def test_the_name_of_an_account_reaches_no_adapter(tmp_path: Path) -> None:
    """The outbox is read by the same URL."""
    url = f"sandbox://{tmp_path}/s.db"
    settings = load_settings({"CLARION_HOME": str(tmp_path), "CLARION_PROVIDERS": f"*={url}?name=mine&dedupe=24h"})
    assert (settings.providers, settings.account_names) == ({"*": f"{url}?dedupe=24h"}, {"*": "mine"})
    await prepare(settings)
    async with open_platform(settings) as platform:
        assert isinstance(platform.providers["mine"], SandboxProvider)
        assert platform.providers["mine"].replay.dedupe_window is not None


@pytest.mark.parametrize("providers", [",", f"sms={SMTP}"])
def test_workers_of_no_account_do_not_start(tmp_path: Path, providers: str) -> None:
    assert clarion("migrate", home=tmp_path).returncode == 0
    answer = clarion("work", home=tmp_path, CLARION_PROVIDERS=providers)
    assert (answer.returncode, answer.stdout, len(answer.stderr.splitlines())) == (2, "", 1)


class Watching(SqliteInMemory):
    """Notes every look for text messages, and whether there were any."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock)
        self.looks: asyncio.Queue[bool] = asyncio.Queue()

    async def discover_flows(self, *, routes: Collection[str], lows: Mapping[int, LowMark]) -> Discovery:
        found = await super().discover_flows(routes=routes, lows=lows)
        if Channel.SMS in routes:
            self.looks.put_nowait(bool(found.heads))
        return found


async def test_an_account_at_fault_rests_on_every_channel_of_its_process() -> None:
    """A mail finds the account at fault; then the workers look at a text message twice."""
    clock, wake_up, at_fault = ManualClock(), WakeUp(), asyncio.Event()
    store = Watching(clock)
    api = ApiHarness(store=store, clock=clock)
    await api.seed()
    api.provider.answers = [Misconfigured(reason="wrong password")]

    def note(_message: ClaimedMessage, _outcome: CallOutcome, _took: float) -> None:
        at_fault.set()

    supervisor = Supervisor(api.platform, wake_up=wake_up, channels=(Channel.EMAIL, Channel.SMS), slots=1, observe=note)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(supervisor.run())
        await api.line.send()
        wake_up.wake(Topic.STAGES)
        await at_fault.wait()
        await api.line.send("one-time-code", "+447700900001", data={"code": "407 112"})
        wake_up.wake(Topic.STAGES)
        while not await store.looks.get():
            pass
        wake_up.wake(Topic.OUTGOING)
        await store.looks.get()  # whatever the look before led to was begun by now, and is brought to its end
        supervisor.stop()
    assert [call.channel for call in api.provider.calls] == [Channel.EMAIL]


class Few(Scripted):
    """A provider that takes three calls at once, and counts them."""

    calls_max = 3

    def __init__(self) -> None:
        super().__init__()
        self.open, self.most = 0, 0

    async def send(self, call: Call) -> CallOutcome:
        self.open += 1
        self.most = max(self.most, self.open)
        await asyncio.sleep(0)  # others begin meanwhile
        self.open -= 1
        return await super().send(call)


@pytest.mark.parametrize("slots", [None, 50])
async def test_an_account_has_no_more_calls_at_once_than_it_takes(slots: int | None) -> None:
    """Whatever the operator gave."""
    api, provider, outcomes = ApiHarness(), Few(), list[CallOutcome]()
    await api.seed()
    platform = msgspec.structs.replace(api.platform, providers={"scripted": provider})
    for number in range(10):
        await api.line.send(to=f"user-{number}@example.com")
    await api.line.queue()

    def note(_message: ClaimedMessage, outcome: CallOutcome, _took: float) -> None:
        outcomes.append(outcome)
        if len(outcomes) == 10:
            supervisor.stop()

    supervisor = Supervisor(platform, wake_up=WakeUp(), channels=(Channel.EMAIL,), slots=slots, observe=note)
    await supervisor.run()
    assert (len(provider.calls), provider.most) == (10, 3)


async def test_a_mail_account_takes_as_many_calls_as_it_has_connections() -> None:
    for url, connections in ((SMTP, 20), (f"{SMTP}&connections=3", 3)):
        provider: object = await open_smtp(url, clock=ManualClock())
        assert isinstance(provider, Limited)
        assert provider.calls_max == connections
