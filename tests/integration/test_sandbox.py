"""The sandbox in this process: what it keeps, what it shows, how it fails when asked to and when its file does."""

import re
import sqlite3
import stat
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from clarion.domain.call import Accepted, Call, CallOutcome, Deferred, Misconfigured, Refused, Replay, Unknown
from clarion.domain.content import ChatContent, Content, EmailContent, InboxContent, PushContent, SmsContent
from clarion.domain.hint import Hints
from clarion.domain.identity import Channel
from clarion.errors import BadConfiguration
from clarion.sandbox import null
from clarion.sandbox.fault import NUMBERS, Fault, Options
from clarion.sandbox.ledger import PAGE_MAX, Ledger
from clarion.sandbox.provider import OneThread, Outbox, SandboxProvider, open_outbox, open_provider
from clarion.sandbox.view import CSP, as_page, told_besides
from clarion.testing.clock import START_AT, ManualClock
from clarion.testing.contracts.provider import call_to

CONTENTS: dict[Channel, Content] = {
    Channel.EMAIL: EmailContent(subject="Hi", html="<p>Hi <b>Ann</b></p>", text="Hi Ann"),
    Channel.SMS: SmsContent(text="Hi <Ann>"),
    Channel.PUSH: PushContent(title="Hi <Ann>", body="Look & see"),
    Channel.CHAT: ChatContent(text="Hi\nAnn"),
    Channel.INBOX: InboxContent(title="Hi <script>alert(1)</script>", body=""),
}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sandbox://{tmp_path}/new/sandbox.db"


@pytest.fixture
async def provider(url: str, clock: ManualClock) -> AsyncIterator[SandboxProvider]:
    provider = await open_provider(url, clock=clock)
    yield provider
    await provider.close()


@pytest.fixture
async def outbox(url: str) -> AsyncIterator[Outbox]:
    outbox = open_outbox(url)
    yield outbox
    await outbox.close()


def to(destination: str, channel: Channel = Channel.CHAT, *, key: str = "key", attempt: int = 1) -> Call:
    call = call_to("x", key=key, channel=channel, content=CONTENTS[channel], attempt=attempt)
    return Call(**{name: getattr(call, name) for name in call.__struct_fields__} | {"destination": destination})


# What it keeps.


@pytest.mark.parametrize("channel", Channel)
async def test_every_channel_is_kept_as_it_was_given(
    provider: SandboxProvider, outbox: Outbox, channel: Channel
) -> None:
    assert await provider.send(to("ann", channel, attempt=3)) == Accepted(provider_message_id="sandbox-1")
    (message,) = (await outbox.page()).messages
    assert (message.channel, message.destination, message.content) == (channel, "ann", CONTENTS[channel])
    assert (message.called_at, message.attempt, message.correlation_id) == (START_AT, 3, "correlation-1")
    assert (message.tenant_id, message.idempotency_key) == ("school", "key")
    assert await outbox.find(message.id) == message


async def test_headers_and_hints_are_kept_as_they_were_given(provider: SandboxProvider, outbox: Outbox) -> None:
    headers, hints = {"List-Unsubscribe": "<https://a.example/u/1>"}, Hints(tags=("a", "b"), unicode=False, from_="me")
    await provider.send(msgspec.structs.replace(to("ann"), headers=headers, hints=hints))
    await provider.send(to("kim"))
    plain, rich = (await outbox.page()).messages
    assert (rich.headers, rich.hints) == (headers, hints)
    assert list(told_besides(rich)) == [
        ("List-Unsubscribe", "<https://a.example/u/1>"),
        ("Hint tags", "a, b"),
        ("Hint unicode", "False"),
        ("Hint from", "me"),
    ]
    assert (plain.headers, plain.hints, list(told_besides(plain))) == ({}, None, [])


async def test_a_file_of_an_earlier_program_is_read_and_written(url: str, clock: ManualClock) -> None:
    """One from before calls had headers and hints."""
    first = await open_provider(url, clock=clock)
    await first.send(to("ann"))
    await first.close()
    with closing(sqlite3.connect(url.removeprefix("sandbox://"))) as file:
        file.executescript("alter table call drop column headers; alter table call drop column hints;")
    second = await open_provider(url, clock=clock)
    await second.send(msgspec.structs.replace(to("kim"), hints=Hints(region="eu")))
    outbox = open_outbox(url)
    kim, ann = (await outbox.page()).messages
    assert (kim.hints, ann.destination, ann.hints) == (Hints(region="eu"), "ann", None)
    await outbox.close()
    await second.close()


async def test_the_outbox_shows_the_newest_first_page_by_page(provider: SandboxProvider, outbox: Outbox) -> None:
    for number in range(7):
        await provider.send(to(f"ann-{number}" if number != 3 else "fail", key=str(number)))
    first = await outbox.page(limit=4)
    assert [message.idempotency_key for message in first.messages] == ["6", "5", "4", "2"]
    await provider.send(to("late", key="late"))
    rest = await outbox.page(limit=4, before=first.next_before)
    assert [message.idempotency_key for message in rest.messages] == ["1", "0"]
    assert rest.next_before is None
    assert (await outbox.page(limit=7)).next_before is None


async def test_the_outbox_shows_one_tenant_or_one_channel(provider: SandboxProvider, outbox: Outbox) -> None:
    await provider.send(to("ann", Channel.CHAT))
    await provider.send(to("ann", Channel.SMS))
    assert [message.id for message in (await outbox.page(channel=Channel.SMS)).messages] == [2]
    assert (await outbox.page(tenant_id="other")).messages == ()
    assert await outbox.find(1, tenant_id="other") is None
    assert await outbox.find(99) is None
    assert len((await outbox.page(tenant_id="school", limit=PAGE_MAX * 10)).messages) == 2


async def test_what_was_kept_is_there_after_a_restart_and_for_this_user_only(url: str, clock: ManualClock) -> None:
    first = await open_provider(url, clock=clock)
    await first.send(to("ann"))
    await first.close()
    second = await open_provider(url, clock=clock)
    assert await second.send(to("ann")) == Accepted(provider_message_id="sandbox-2")
    path = Path(url.removeprefix("sandbox://"))
    assert [stat.S_IMODE(one.stat().st_mode) for one in (path, path.with_name("sandbox.db-wal"))] == [0o600, 0o600]
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    await second.close()


async def test_two_providers_share_a_file(url: str, clock: ManualClock, provider: SandboxProvider) -> None:
    other = await open_provider(f"{url}?dedupe=24h", clock=clock)
    await provider.send(to("ann"))
    assert await other.send(to("ann")) == Accepted(provider_message_id="sandbox-1")
    await other.close()


async def test_a_window_ends(url: str, clock: ManualClock) -> None:
    provider = await open_provider(f"{url}?dedupe=15m", clock=clock)
    assert provider.replay == Replay(dedupe_window=timedelta(minutes=15))
    first = await provider.send(to("ann"))
    clock.advance(timedelta(minutes=14))
    assert await provider.send(to("ann", attempt=2)) == first
    clock.advance(timedelta(minutes=1))
    assert await provider.send(to("ann", attempt=3)) == Accepted(provider_message_id="sandbox-3")
    assert await provider.send(to("ann", attempt=4)) == Accepted(provider_message_id="sandbox-3")
    await provider.close()


async def test_what_was_turned_down_before_does_not_count_as_a_duplicate(url: str, clock: ManualClock) -> None:
    provider = await open_provider(f"{url}?dedupe=24h", clock=clock)
    assert isinstance(await provider.send(to("defer1")), Deferred)
    assert isinstance(await provider.send(to("unknown2", key="lost reply")), Unknown)
    assert await provider.send(to("defer1", attempt=2)) == Accepted(provider_message_id="sandbox-3")
    assert isinstance(await provider.send(to("unknown2", key="lost reply", attempt=2)), Unknown)
    assert await provider.send(to("unknown2", key="lost reply", attempt=3)) == Accepted(provider_message_id="sandbox-2")
    await provider.close()


# What it shows.


async def test_a_mail_is_shown_as_it_is_and_anything_else_as_text(provider: SandboxProvider, outbox: Outbox) -> None:
    for channel in Channel:
        await provider.send(to("ann <x>", channel))
    pages = {message.channel: as_page(message) for message in (await outbox.page()).messages}
    assert pages[Channel.EMAIL] == "<p>Hi <b>Ann</b></p>"
    assert "<p>Hi &lt;Ann&gt;</p>" in pages[Channel.SMS]
    assert "<h1>Hi &lt;Ann&gt;</h1><p>Look &amp; see</p>" in pages[Channel.PUSH]
    assert "<p>Hi\nAnn</p>" in pages[Channel.CHAT]
    assert "<script" not in pages[Channel.INBOX]
    assert all("chat to ann &lt;x&gt;" in page for page in [pages[Channel.CHAT]])
    assert CSP.startswith("sandbox; default-src 'none';")


# How it fails when asked to.

OUTCOMES: dict[Fault, CallOutcome] = {
    Fault.FAIL: Refused(reason="the sandbox was asked to refuse it"),
    Fault.NOBODY: Refused(reason="the sandbox was asked not to know the recipient", recipient_not_found=True),
    Fault.DEFER: Deferred(reason="the sandbox was asked to defer it"),
    Fault.THROTTLE: Deferred(
        reason="the sandbox was asked to throttle it", retry_after=timedelta(seconds=2), throttled=True
    ),
    Fault.UNKNOWN: Unknown(reason="the sandbox was asked to lose the reply"),
    Fault.LOST: Unknown(reason="the sandbox was asked to lose the reply"),
    Fault.MISCONFIGURED: Misconfigured(reason="the sandbox was asked to refuse the account"),
}


@pytest.mark.parametrize("fault", OUTCOMES)
@pytest.mark.parametrize("form", ["{}@example.com", "{}+tag@example.com", "{}", "{}-1", "{}:token", "number"])
async def test_a_destination_asks_for_a_fault(provider: SandboxProvider, url: str, fault: Fault, form: str) -> None:
    number = next(number for number, named in NUMBERS.items() if named is fault)
    destination = number if form == "number" else form.format(fault)
    assert await provider.send(to(destination)) == OUTCOMES[fault]
    with closing(Ledger(Path(url.removeprefix("sandbox://")))) as ledger:
        totals = ledger.totals()
    taken, lost = fault is Fault.UNKNOWN, fault is Fault.LOST
    assert (totals.calls, totals.accepted, totals.lost) == (1, int(taken), int(lost))
    assert totals.turned_down == int(not taken and not lost)


@pytest.mark.parametrize(
    "destination", ["failure@x.com", "ann+fail@x.com", "Fail@x.com", "defer10@x.com", "+12025550140"]
)
async def test_only_the_whole_first_word_asks_for_a_fault(provider: SandboxProvider, destination: str) -> None:
    assert isinstance(await provider.send(to(destination)), Accepted)


async def test_a_digit_bounds_a_fault_to_the_first_attempts(provider: SandboxProvider) -> None:
    outcomes = [type(await provider.send(to("defer2@x.com", attempt=attempt))) for attempt in (1, 2, 3)]
    assert outcomes == [Deferred, Deferred, Accepted]


def test_the_reference_lists_every_word_and_its_number() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "sandbox.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `([a-z]+)` \| `(\+[0-9]+)` \|", page, re.MULTILINE) == [
        (str(fault), number) for number, fault in NUMBERS.items()
    ]


def test_a_slow_reply_takes_as_long_as_it_says() -> None:
    assert Options().fate(to("slow@x.com")) == (Fault.SLOW, timedelta(seconds=1))
    assert Options().fate(to("slow7@x.com", attempt=9)) == (Fault.SLOW, timedelta(seconds=7))
    assert Options.parse("latency=20ms").fate(to("ann@x.com")) == (Fault.NONE, timedelta(milliseconds=20))


def test_chance_is_a_matter_of_the_seed_the_key_and_the_attempt() -> None:
    options = Options.parse("fail=0.1&defer=0.2&unknown=0.3&seed=7")
    fates = [options.fate(to("ann", key=str(number)))[0] for number in range(2000)]
    assert fates == [options.fate(to("ann", key=str(number)))[0] for number in range(2000)]
    counts = Counter(fates)
    for fault, share in ((Fault.FAIL, 0.1), (Fault.DEFER, 0.2), (Fault.UNKNOWN, 0.3), (Fault.NONE, 0.4)):
        assert abs(counts[fault] / 2000 - share) < 0.05
    other = Options.parse("fail=0.1&defer=0.2&unknown=0.3&seed=8")
    assert fates != [other.fate(to("ann", key=str(number)))[0] for number in range(2000)]
    assert fates != [options.fate(to("ann", key=str(number), attempt=2))[0] for number in range(2000)]


# How it fails when its file does.


async def test_a_file_that_another_holds_defers(tmp_path: Path, clock: ManualClock) -> None:
    ledger = Ledger(tmp_path / "sandbox.db", busy_timeout=timedelta(milliseconds=1))
    provider = SandboxProvider(ledger, Options(), clock=clock)
    holder = sqlite3.connect(tmp_path / "sandbox.db", isolation_level=None)
    holder.execute("begin immediate")
    assert await provider.send(to("ann")) == Deferred(
        reason="the sandbox's file cannot be written (database is locked)"
    )
    holder.execute("rollback")
    assert isinstance(await provider.send(to("ann")), Accepted)
    holder.close()
    await provider.close()


async def test_a_full_disk_defers(tmp_path: Path, clock: ManualClock) -> None:
    ledger = Ledger(tmp_path / "sandbox.db")
    pages = ledger._connection.execute("pragma page_count").fetchone()[0]
    ledger._connection.execute(f"pragma max_page_count = {pages}")
    provider = SandboxProvider(ledger, Options(), clock=clock)
    content = EmailContent(subject="x", html="x" * 100_000, text="x")
    outcome = await provider.send(call_to("ann", content=content))
    assert isinstance(outcome, Deferred)
    assert "full" in outcome.reason
    assert ledger.totals().calls == 0
    await provider.close()


async def test_a_ledger_that_was_closed_leaves_it_unknown(tmp_path: Path, clock: ManualClock) -> None:
    ledger = Ledger(tmp_path / "sandbox.db")
    provider = SandboxProvider(ledger, Options(), clock=clock, runner=OneThread())
    ledger.close()
    assert isinstance(await provider.send(to("ann")), Unknown)
    await provider.close()


@pytest.mark.parametrize(
    "url, why",
    [
        ("sandbox://relative/path.db", "three slashes"),
        ("sandbox:relative.db", "three slashes"),
        ("sandbox:///", "three slashes"),
        ("sandbox:///tmp/x.db?dedupe=soon", "a number and a unit"),
        ("sandbox:///tmp/x.db?speed=9", "there is no option 'speed'"),
        ("sandbox:///tmp/x.db?fail=2", "the share of fail is no number between 0 and 1"),
        ("sandbox:///tmp/x.db?fail=often", "the share of fail"),
        ("sandbox:///tmp/x.db?fail=0.6&defer=0.6", "add up to more than 1"),
        ("sandbox:///proc/nowhere/x.db", "cannot be used"),
    ],
)
async def test_a_url_that_cannot_be_used_says_why(url: str, why: str, clock: ManualClock) -> None:
    with pytest.raises(BadConfiguration, match=why):
        await open_provider(url, clock=clock)


def test_a_file_that_is_something_else_is_refused_and_not_held_open(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("These are my notes, and no database at all." * 100, encoding="utf-8")
    with pytest.raises(BadConfiguration, match="file is not a database") as refused:
        open_outbox(f"sandbox://{notes}")
    held = [one.readlink() for one in Path("/proc/self/fd").iterdir() if one.is_symlink()]
    assert notes not in held
    assert refused.tb is not None  # until here it keeps alive whatever was opened and not closed


async def test_null_accepts_and_forgets() -> None:
    provider = await null.open_provider("null://", clock=ManualClock())
    assert await provider.send(to("fail@x.com")) == Accepted()
    assert provider.replay == Replay()
    await provider.close()
