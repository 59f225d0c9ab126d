"""Mail over real sockets: every outcome against a real server, connections kept and lost, TLS, accounts."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from email.message import EmailMessage
from uuid import UUID

import msgspec
import pytest

from clarion.adapters.providers.mail import HEADERS, message_id
from clarion.adapters.providers.smtp import IDLE_TIME_MAX, SmtpProvider, open_provider
from clarion.adapters.providers.smtp_account import CONNECTIONS, Account
from clarion.domain.call import Accepted, Call, CallOutcome, Deferred, Misconfigured, Refused, Unknown
from clarion.domain.content import EmailContent, SmsContent
from clarion.domain.identity import Channel
from clarion.testing.clock import ManualClock
from tests.integration.smtp_server import Certificates, Greets, Script, closed_port, listening, smtp_server
from tests.unit.test_mail import hostile_values

KEY = "6d0cbb1e-0d6c-4ad5-9c5d-7f6a1c1f0b52:email:0123456789abcdef0123456789abcdef"
CONTENT = EmailContent(subject="Hello Ann", html="<p>Hello <b>Ann</b></p>", text="Hello Ann\n.\nBye")

Open = Callable[..., SmtpProvider]


def call_to(destination: str, *, key: str = KEY, content: EmailContent | SmsContent = CONTENT) -> Call:
    return Call(
        idempotency_key=key,
        message_id=UUID(int=7),
        tenant_id="school",
        channel=Channel.EMAIL,
        destination=destination,
        content=content,
        attempt=1,
        correlation_id="c-1",
    )


@pytest.fixture
async def script() -> Script:
    return Script()


@pytest.fixture
async def providers() -> AsyncIterator[Open]:
    """Open accounts, and close them after the test."""
    async with AsyncExitStack() as stack:

        def opened(port: int, options: str = "", *, user: str = "", clock: ManualClock | None = None) -> SmtpProvider:
            url = f"smtp://{user}127.0.0.1:{port}?from=School%20%3Cschool@example.com%3E&timeout=5{options}"
            provider = SmtpProvider(Account.parse(url), clock=clock or ManualClock())
            stack.push_async_callback(provider.close)
            return provider

        yield opened


async def send_to(script: Script, providers: Open, recipient: str) -> CallOutcome:
    """Send one mail through a server of its own."""
    async with smtp_server(script) as port:
        return await providers(port).send(call_to(recipient))


# What arrives.


async def test_a_mail_arrives_as_it_was_written(script: Script, providers: Open) -> None:
    outcome = await send_to(script, providers, "ann@example.com")
    (received,) = script.received
    mail = received.mail
    assert outcome == Accepted(provider_message_id=mail["Message-ID"])
    assert (received.sender, received.recipients) == ("school@example.com", ["ann@example.com"])
    assert mail.keys() == list(HEADERS)
    assert (mail["From"], mail["To"], mail["Subject"]) == (
        "School <school@example.com>",
        "ann@example.com",
        "Hello Ann",
    )
    assert mail["Date"] == "Thu, 15 Jan 2026 12:00:00 +0000"
    text, html = mail.iter_parts()
    assert isinstance(text, EmailMessage)
    assert isinstance(html, EmailMessage)
    assert (text.get_content_type(), html.get_content_type()) == ("text/plain", "text/html")
    assert text.get_content() == "Hello Ann\r\n.\r\nBye"
    assert html.get_content() == CONTENT.html


async def test_headers_of_a_call_arrive(script: Script, providers: Open) -> None:
    link = "<https://clarion.example.com/u/AbC-_123>"
    given = {"List-Unsubscribe": link, "List-Unsubscribe-Post": "List-Unsubscribe=One-Click"}
    async with smtp_server(script) as port:
        outcome = await providers(port).send(msgspec.structs.replace(call_to("ann@example.com"), headers=given))
    assert isinstance(outcome, Accepted)
    mail = script.received[0].mail
    assert {name: mail[name] for name in given} == given


async def test_a_header_that_would_be_two_is_never_sent(script: Script, providers: Open) -> None:
    call = msgspec.structs.replace(call_to("ann@example.com"), headers={"X-Tag": "a\r\nBcc: evil@example.com"})
    async with smtp_server(script) as port:
        outcome = await providers(port).send(call)
    assert isinstance(outcome, Refused)
    assert not script.received


async def test_a_mail_that_is_sent_twice_has_one_message_id(script: Script, providers: Open) -> None:
    async with smtp_server(script) as port:
        provider = providers(port)
        await provider.send(call_to("ann@example.com"))
        await provider.send(call_to("ann@example.com"))
        await provider.send(call_to("ann@example.com", key="another"))
    first, second, other = (received.mail["Message-ID"] for received in script.received)
    assert first == second != other
    assert first == message_id(KEY, domain="example.com")


async def test_an_address_outside_ascii_is_sent_where_the_server_takes_it(script: Script, providers: Open) -> None:
    assert isinstance(await send_to(script, providers, "änn@example.com"), Accepted)
    assert script.received[0].recipients == ["änn@example.com"]
    assert script.received[0].mail["To"] == "änn@example.com"


async def test_large_mails_are_whole(script: Script, providers: Open) -> None:
    content = EmailContent(subject="x", html="<p>ü…\n</p>" * 20_000, text="a\r\nb\rc\n" + "é" * 10_000)
    async with smtp_server(script) as port:
        assert isinstance(await providers(port).send(call_to("ann@example.com", content=content)), Accepted)
    body = [part.get_content() for part in script.received[0].mail.iter_parts() if isinstance(part, EmailMessage)]
    assert body == ["a\r\nb\r\nc\r\n" + "é" * 10_000, content.html.replace("\n", "\r\n")]


# What replies mean.


@pytest.mark.parametrize("word", ["nobody", "elsewhere", "misnamed"])
async def test_a_recipient_that_the_server_does_not_know_is_refused_as_such(
    script: Script, providers: Open, word: str
) -> None:
    outcome = await send_to(script, providers, f"{word}@example.com")
    assert isinstance(outcome, Refused)
    assert outcome.recipient_not_found
    assert outcome.reason.startswith("recipient: 55")
    assert "@" not in outcome.reason
    assert script.received == []


@pytest.mark.parametrize("word", ["blocked", "broken", "fail", "large"])
async def test_a_mail_that_the_server_will_never_take_is_refused(script: Script, providers: Open, word: str) -> None:
    outcome = await send_to(script, providers, f"{word}@example.com")
    assert isinstance(outcome, Refused)
    assert not outcome.recipient_not_found


@pytest.mark.parametrize("word", ["defer", "full", "closing", "odd", "defer-late", "hang-up"])
async def test_a_mail_that_the_server_does_not_take_now_is_deferred(script: Script, providers: Open, word: str) -> None:
    outcome = await send_to(script, providers, f"{word}@example.com")
    assert isinstance(outcome, Deferred)
    assert outcome.throttled == (word == "closing")


@pytest.mark.parametrize("word", ["unknown", "garbage", "odd-late"])
async def test_after_the_content_has_left_only_a_reply_proves_anything(
    script: Script, providers: Open, word: str
) -> None:
    outcome = await send_to(script, providers, f"{word}@example.com")
    assert isinstance(outcome, Unknown)
    assert outcome.reason.startswith("after the content")
    assert len(script.received) == 1


async def test_a_server_that_does_not_answer_before_the_content_defers(script: Script) -> None:
    async with smtp_server(script) as port:
        provider = await open_provider(f"smtp://127.0.0.1:{port}?from=a@example.com&timeout=0.2", clock=ManualClock())
        outcome = await provider.send(call_to("stall@example.com"))
    assert outcome == Deferred(reason="before the content: no reply in time")
    assert script.received == []


async def test_a_server_that_never_greets_defers() -> None:
    async with listening(asyncio.Protocol) as port:
        provider = await open_provider(f"smtp://127.0.0.1:{port}?from=a@example.com&timeout=0.2", clock=ManualClock())
        outcome = await provider.send(call_to("ann@example.com"))
    assert isinstance(outcome, Deferred)


async def test_a_server_that_does_not_answer_after_the_content_leaves_it_unknown(script: Script) -> None:
    async with smtp_server(script) as port:
        provider = await open_provider(f"smtp://127.0.0.1:{port}?from=a@example.com&timeout=0.2", clock=ManualClock())
        outcome = await provider.send(call_to("stall-late@example.com"))
        await provider.close()
    assert outcome == Unknown(reason="after the content: no reply in time")
    assert len(script.received) == 1


async def test_nobody_listening_defers(providers: Open) -> None:
    outcome = await providers(closed_port()).send(call_to("ann@example.com"))
    assert isinstance(outcome, Deferred)
    assert re.fullmatch(r"connecting: 127\.0\.0\.1:\d+ refuses connections", outcome.reason)


async def test_a_host_that_does_not_exist_defers() -> None:
    provider = await open_provider("smtp://no-such-host.invalid:25?from=a@example.com&tls=none", clock=ManualClock())
    outcome = await provider.send(call_to("ann@example.com"))
    assert outcome == Deferred(reason="connecting: no address is known for the host no-such-host.invalid")


@pytest.mark.parametrize(
    "greeting, outcome",
    [
        (b"", Deferred),
        (b"421 busy\r\n", Deferred),
        (b"554 no SMTP service here\r\n", Misconfigured),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", Deferred),
        (b"220 hello\r\n", Deferred),
    ],
)
async def test_a_server_that_does_not_want_to_talk(
    providers: Open, greeting: bytes, outcome: type[CallOutcome]
) -> None:
    async with listening(lambda: Greets(greeting)) as port:
        assert isinstance(await providers(port).send(call_to("ann@example.com")), outcome)


async def test_a_wrong_password_is_a_matter_of_the_account(script: Script, providers: Open) -> None:
    async with smtp_server(script, auth=True) as port:
        wrong = await providers(port, user="ann:sesame@").send(call_to("ann@example.com"))
        right = await providers(port, user="ann:open%20sesame@").send(call_to("ann@example.com"))
        nobody = await providers(port).send(call_to("ann@example.com"))
    assert isinstance(wrong, Misconfigured)
    assert wrong.reason.startswith("connecting: 535")
    assert isinstance(right, Accepted)
    assert isinstance(nobody, Misconfigured)
    assert nobody.reason.startswith("sender: 530")


async def test_a_server_without_a_way_to_log_in_is_a_matter_of_the_account(script: Script, providers: Open) -> None:
    async with smtp_server(script) as port:
        outcome = await providers(port, user="ann:sesame@").send(call_to("ann@example.com"))
    assert isinstance(outcome, Misconfigured)


async def test_content_of_another_channel_is_not_sent(script: Script, providers: Open) -> None:
    async with smtp_server(script) as port:
        outcome = await providers(port).send(call_to("ann@example.com", content=SmsContent(text="x")))
    assert isinstance(outcome, Misconfigured)


# Connections.


async def test_mails_one_after_the_other_use_one_connection(script: Script, providers: Open) -> None:
    async with smtp_server(script) as port:
        provider = providers(port)
        for recipient in ("a", "nobody", "b", "fail", "defer", "c"):
            await provider.send(call_to(f"{recipient}@example.com"))
    assert len(script.sessions) == 1
    assert [received.recipients for received in script.received] == [
        ["a@example.com"],
        ["b@example.com"],
        ["fail@example.com"],
        ["c@example.com"],
    ]


async def test_mails_at_once_use_a_connection_each_and_few_are_kept(script: Script, providers: Open) -> None:
    number = CONNECTIONS + 5
    async with smtp_server(script) as port:
        provider = providers(port)
        outcomes = await asyncio.gather(*(provider.send(call_to(f"ann{n}@example.com")) for n in range(number)))
        assert all(isinstance(outcome, Accepted) for outcome in outcomes)
        assert len(script.sessions) == number
        assert len(provider._idle) == CONNECTIONS
    assert sorted(received.recipients[0] for received in script.received) == sorted(
        f"ann{n}@example.com" for n in range(number)
    )


async def test_a_connection_that_the_server_closed_meanwhile_costs_no_attempt(script: Script, providers: Open) -> None:
    async with smtp_server(script) as port:
        provider = providers(port)
        await provider.send(call_to("a@example.com"))
        transport = provider._idle[0].client.transport
        assert transport is not None
        # Half of a closed connection: the server is gone, and we have not noticed yet.
        await provider._idle[0].client.execute_command(b"QUIT")
        assert isinstance(await provider.send(call_to("b@example.com")), Accepted)
    assert len(script.received) == 2
    assert len(script.sessions) == 2


async def test_a_connection_that_waited_long_is_not_used_again(script: Script, providers: Open) -> None:
    clock = ManualClock()
    async with smtp_server(script) as port:
        provider = providers(port, clock=clock)
        await provider.send(call_to("a@example.com"))
        clock.advance(IDLE_TIME_MAX + timedelta(seconds=1))
        await provider.send(call_to("b@example.com"))
    assert len(script.sessions) == 2


async def test_a_call_that_is_canceled_leaves_no_connection_behind(script: Script, providers: Open) -> None:
    async with smtp_server(script) as port:
        provider = providers(port)
        for word in ("stall", "stall-late"):
            async with asyncio.TaskGroup() as tasks:
                task = tasks.create_task(provider.send(call_to(f"{word}@example.com")))
                await script.stalled.wait()
                script.stalled.clear()
                task.cancel()
        assert provider._idle == []
        assert isinstance(await provider.send(call_to("b@example.com")), Accepted)
    assert script.received[-1].recipients == ["b@example.com"]


async def test_after_a_failure_the_next_mail_goes_out(script: Script, providers: Open) -> None:
    async with smtp_server(script) as port:
        provider = providers(port)
        for word in ("hang-up", "unknown", "closing"):
            assert not isinstance(await provider.send(call_to(f"{word}@example.com")), Accepted)
            assert isinstance(await provider.send(call_to("ann@example.com")), Accepted)


# TLS.


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.mark.parametrize("tls", ["starttls", "tls"])
async def test_mail_goes_over_tls_to_a_server_that_is_trusted(
    script: Script, providers: Open, certificates: Certificates, tls: str
) -> None:
    async with smtp_server(script, auth=True, tls=certificates.server, starttls=tls == "starttls") as port:
        trusted = providers(port, f"&tls={tls}&ca={certificates.authority}", user="ann:open%20sesame@")
        assert isinstance(await trusted.send(call_to("ann@example.com")), Accepted)
        assert isinstance(await trusted.send(call_to("ann@example.com")), Accepted)
        stranger = await providers(port, f"&tls={tls}").send(call_to("ann@example.com"))
    assert isinstance(stranger, Misconfigured)
    assert "certificate is not trusted" in stranger.reason
    assert len(script.received) == 2


async def test_a_server_without_starttls_gets_no_mail_in_the_clear(script: Script, providers: Open) -> None:
    async with smtp_server(script) as port:
        outcome = await providers(port, "&tls=starttls").send(call_to("ann@example.com"))
    assert outcome == Misconfigured(reason="connecting: the server offers no STARTTLS: see the option tls")
    assert script.received == []


class Plain(asyncio.Protocol):
    """A server that offers nothing at all."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(b"220 hello\r\n")

    def data_received(self, data: bytes) -> None:
        self._transport.write(b"250 plain\r\n")


async def test_a_server_where_nobody_can_log_in_is_said_in_our_words(providers: Open) -> None:
    async with listening(Plain) as port:
        outcome = await providers(port, user="ann:sesame@").send(call_to("ann@example.com"))
    assert isinstance(outcome, Misconfigured)
    assert outcome.reason.startswith("connecting: the server offers no way to log in")


async def test_a_plain_server_where_tls_was_expected_defers(script: Script, providers: Open) -> None:
    async with smtp_server(script) as port:
        outcome = await providers(port, "&tls=tls").send(call_to("ann@example.com"))
    assert isinstance(outcome, Deferred)


@pytest.mark.parametrize("value", hostile_values())
async def test_a_hostile_subject_or_recipient_is_refused_before_anything_is_sent(providers: Open, value: str) -> None:
    provider = providers(closed_port())
    content = EmailContent(subject=value, html="x", text="x")
    assert isinstance(await provider.send(call_to("ann@example.com", content=content)), Refused)
    for destination in (value, f"ann@example.com{value}", f"{value}@example.com", "a@example.com,b@example.com"):
        assert isinstance(await provider.send(call_to(destination)), Refused)
