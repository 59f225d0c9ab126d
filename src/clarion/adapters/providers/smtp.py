"""Mail by SMTP: `smtp://user:password@host:port?from=School%20%3Cschool@example.com%3E`.

Options: `from` (needed; an address, or a name with an address in angle brackets), `tls` (`starttls`, `tls` for TLS from
the first byte, `none`; without it `none` for this machine and `starttls` for any other), `ca` (a file of certificates
to trust besides the system's), `timeout` (seconds for everything before the content, and again for the reply to it; 9
without it and at most), `connections` (how many a process opens at once; 20 without it).

What a reply means depends on how far the conversation had come. Until the content leaves, nothing can have been sent;
from then on only a complete reply proves anything.

| when | what happens | outcome |
|---|---|---|
| connecting | refused, no such name, timeout, closed, TLS fails | deferred |
| connecting | the certificate is not trusted; the server offers no STARTTLS or no way to log in | misconfigured |
| greeting, log-in, sender | 4xx | deferred |
| greeting, log-in, sender | 5xx: the account or its sender is not welcome | misconfigured |
| sender | 552: too large | refused |
| recipient | 550, 551, 553, but not for reasons of policy (5.7.x) | refused, recipient not found |
| recipient, content | any other 5xx | refused |
| anywhere | 421 | deferred, throttled |
| anywhere | 530, 534, 535, 538: credentials | misconfigured |
| recipient, content | any other 4xx | deferred |
| before the content | closed, timeout, a reply that makes no sense | deferred |
| after the content | closed, timeout, a reply that makes no sense | unknown |
| after the content | 2xx | accepted, with our Message-ID |

SMTP does not de-duplicate, so nothing is replayed by itself; the Message-ID derives from the message's key, by which a
mail that came twice can be recognised. Reads no settings, retries nothing.
"""

import asyncio
import os
import re
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from enum import StrEnum
from typing import Final

import msgspec
from aiosmtplib import (
    SMTP,
    SMTPConnectError,
    SMTPException,
    SMTPResponseException,
    SMTPServerDisconnected,
    SMTPTimeoutError,
)

from clarion.adapters.providers.mail import Mail, build, message_id
from clarion.adapters.providers.smtp_account import Account
from clarion.domain.call import (
    REASON_CHARS_MAX,
    Accepted,
    Call,
    CallOutcome,
    Deferred,
    Misconfigured,
    Refused,
    Replay,
    Unknown,
)
from clarion.domain.content import EmailContent
from clarion.domain.destination import normalise
from clarion.domain.identity import Channel
from clarion.errors import InvalidInput
from clarion.ports.clock import Clock

NO_SUCH_RECIPIENT: Final = frozenset({550, 551, 553})
CREDENTIALS: Final = frozenset({530, 534, 535, 538})
CLOSING: Final = 421
TOO_LARGE: Final = 552
GO_AHEAD: Final = 354

IDLE_TIME_MAX: Final = timedelta(seconds=30)
"""Servers close an idle connection after a minute or more; a younger one is most likely open."""

_LOST: Final = (SMTPServerDisconnected, SMTPTimeoutError)
_ENHANCED: Final = re.compile(r"([245]\.[0-9]{1,3})\.[0-9]{1,3}\b")
_ADDRESS: Final = re.compile(r"[^\s<>]+@[^\s<>:]+")


class Phase(StrEnum):
    """How far a conversation has come, in words for a reason."""

    CONNECT = "connecting"
    SENDER = "sender"
    RECIPIENT = "recipient"
    DATA = "before the content"
    CONTENT = "after the content"


def judge(phase: Phase, code: int, text: str) -> CallOutcome:
    """Say what a reply other than a go-ahead means; the table stands at the top of the file."""
    reason = _reason(phase, f"{code} {text}")
    if 400 <= code <= 499:
        return Deferred(reason=reason, throttled=code == CLOSING)
    if not 500 <= code <= 599:
        return Unknown(reason=reason) if phase is Phase.CONTENT else Deferred(reason=reason)
    if code in CREDENTIALS or (phase in (Phase.CONNECT, Phase.SENDER) and code != TOO_LARGE):
        return Misconfigured(reason=reason)
    enhanced = _ENHANCED.match(text)
    policy = enhanced is not None and enhanced[1] == "5.7"
    return Refused(
        reason=reason, recipient_not_found=phase is Phase.RECIPIENT and code in NO_SUCH_RECIPIENT and not policy
    )


class _Idle(msgspec.Struct, frozen=True):
    """A connection that waits for the next mail; `unfinished` means that the last one was broken off."""

    client: SMTP
    since: float
    unfinished: bool


class SmtpProvider:
    """One account with one SMTP server."""

    channels = frozenset({Channel.EMAIL})

    def __init__(self, account: Account, *, clock: Clock) -> None:
        """Connect to nothing yet: that is for the first mail."""
        self._account = account
        self._clock = clock
        self._tls = account.tls_context()
        self._idle: list[_Idle] = []

    @property
    def replay(self) -> Replay:
        """Mail that is sent twice arrives twice."""
        return Replay()

    @property
    def calls_max(self) -> int:
        """A connection carries one mail at a time, and is kept for the next one."""
        return self._account.connections

    async def send(self, call: Call) -> CallOutcome:
        """Hand one mail over, over a connection that is open or a new one."""
        if not isinstance(call.content, EmailContent):
            return Misconfigured(reason=f"an SMTP account carries mail only, not {call.channel}")
        ident = message_id(call.idempotency_key, domain=self._account.sender.domain)
        try:
            content = build(
                Mail(
                    sender=self._account.sender,
                    to=normalise(Channel.EMAIL, call.destination),
                    subject=call.content.subject,
                    text=call.content.text,
                    html=call.content.html,
                    message_id=ident,
                    sent_at=self._clock.now(),
                    headers=call.headers,
                )
            )
        except InvalidInput as error:
            return Refused(reason=_reason("mail", str(error)))
        try:
            async with asyncio.timeout(self._account.timeout.total_seconds()):
                ready = await self._ready(call.destination)
        except TimeoutError:
            return Deferred(reason=_reason(Phase.DATA, "no reply in time"))
        if not isinstance(ready, SMTP):
            return ready
        with _closed_on_error(ready):
            outcome = await self._give(ready, content)
        self._keep(ready, unfinished=False)
        return Accepted(provider_message_id=ident) if isinstance(outcome, Accepted) else outcome

    async def probe(self) -> str | None:
        """Connect, log in and name the sender, then hang up: no mail is sent."""
        client = self._client()
        try:
            async with asyncio.timeout(self._account.timeout.total_seconds()):
                with _closed_on_error(client):
                    outcome = await self._connect(client, [])
        except TimeoutError:
            return _reason(Phase.CONNECT, "no reply in time")
        await _hang_up(client)
        return None if outcome is None or isinstance(outcome, Accepted) else outcome.reason

    async def close(self) -> None:
        """Send QUIT on every idle connection and close it."""
        while self._idle:
            await _hang_up(self._idle.pop().client)

    async def _ready(self, recipient: str) -> SMTP | CallOutcome:
        """Bring a connection to where the server waits for the content, or return what went wrong."""
        opened = await self._open(utf8=not recipient.isascii())
        if not isinstance(opened, SMTP):
            return opened
        with _closed_on_error(opened):
            outcome = await self._address(opened, recipient)
        if outcome is None:
            return opened
        self._keep(opened, unfinished=True)
        return outcome

    async def _open(self, *, utf8: bool) -> SMTP | CallOutcome:
        """Begin a mail on a waiting connection that turns out to be open, or on a new one."""
        options = ["SMTPUTF8"] if utf8 else []
        while self._idle:
            waiting = self._idle.pop()
            old = self._clock.monotonic() - waiting.since > IDLE_TIME_MAX.total_seconds()
            if old or not waiting.client.is_connected:
                waiting.client.close()
                continue
            # The server may have closed an idle connection. Nothing of this mail was sent on it, so going on with
            # another one is no second attempt.
            with suppress(*_LOST, SMTPResponseException), _closed_on_error(waiting.client):
                if waiting.unfinished:
                    await waiting.client.rset()
                await waiting.client.mail(self._account.sender.address, options=options)
                return waiting.client
        client = self._client()
        with _closed_on_error(client):
            outcome = await self._connect(client, options)
        if outcome is None:
            return client
        client.close()
        return outcome

    async def _connect(self, client: SMTP, options: list[str]) -> CallOutcome | None:
        """Connect, log in and name the sender; return what went wrong, or None."""
        phase = Phase.CONNECT
        try:
            await client.connect()
            phase = Phase.SENDER
            if options and not client.supports_esmtp:
                await client.ehlo()
            if options and not client.supports_extension("smtputf8"):
                return Refused(reason="the server takes no addresses outside ASCII")
            await client.mail(self._account.sender.address, options=options)
        except SMTPResponseException as error:
            return judge(phase, error.code, error.message)
        except (*_LOST, SMTPConnectError, OSError) as error:
            cause = error.__cause__ if isinstance(error, SMTPConnectError) else error
            if isinstance(cause, ssl.SSLCertVerificationError):
                return Misconfigured(reason=_reason(phase, f"the certificate is not trusted: {cause.verify_message}"))
            return Deferred(reason=_reason(phase, _fault(error, self._account)))
        except SMTPException as error:  # no STARTTLS, no way to log in that both sides know
            return Misconfigured(reason=_reason(phase, _fault(error, self._account)))
        return None

    async def _address(self, client: SMTP, recipient: str) -> CallOutcome | None:
        """Name the recipient and send DATA; return what went wrong, or None."""
        phase = Phase.RECIPIENT
        try:
            await client.rcpt(recipient, encoding="utf-8")
            phase = Phase.DATA
            reply = await client.execute_command(b"DATA")
        except SMTPResponseException as error:
            return judge(phase, error.code, error.message)
        except _LOST as error:
            return Deferred(reason=_reason(phase, _fault(error, self._account)))
        return None if reply.code == GO_AHEAD else judge(phase, reply.code, reply.message)

    async def _give(self, client: SMTP, content: bytes) -> CallOutcome:
        """Give the content; from the moment that it leaves, only a complete reply proves anything."""
        protocol = client.protocol
        if protocol is None:
            return Deferred(reason=_reason(Phase.DATA, "the connection was lost"))
        try:
            # No line of ours begins with a dot: they are headers and base64.
            protocol.write(content + b".\r\n")
        except SMTPServerDisconnected as error:
            return Deferred(reason=_reason(Phase.DATA, _fault(error, self._account)))
        try:
            reply = await protocol.read_response(timeout=self._account.timeout.total_seconds())
        except SMTPException as error:
            client.close()
            return Unknown(reason=_reason(Phase.CONTENT, _fault(error, self._account)))
        return Accepted() if 200 <= reply.code <= 299 else judge(Phase.CONTENT, reply.code, reply.message)

    def _client(self) -> SMTP:
        """Make a client that is not connected yet."""
        account = self._account
        return SMTP(
            hostname=account.host,
            port=account.port,
            username=account.username,
            password=account.password,
            # Its own default asks the resolver for this machine's name.
            local_hostname=account.sender.domain,
            timeout=account.timeout.total_seconds(),
            use_tls=account.tls == "tls",
            start_tls=account.tls == "starttls",
            tls_context=self._tls,
        )

    def _keep(self, client: SMTP, *, unfinished: bool) -> None:
        """Let a connection wait for the next mail, if it is open and not too many wait."""
        if client.is_connected and len(self._idle) < self._account.connections:
            self._idle.append(_Idle(client, self._clock.monotonic(), unfinished))
        else:
            client.close()


async def _hang_up(client: SMTP) -> None:
    """Send QUIT, if the connection still stands, and close it."""
    with suppress(SMTPException, OSError):
        await client.quit(timeout=1)  # a server that does not answer is not waited for
    client.close()


@contextmanager
def _closed_on_error(client: SMTP) -> Iterator[None]:
    """Close a connection that is left in the middle: its next reply would be taken for another mail's."""
    try:
        yield
    except BaseException:
        client.close()
        raise


async def open_provider(url: str, *, clock: Clock) -> SmtpProvider:
    """Read an account's URL; whether the server answers is seen by `probe`, or with the first mail."""
    return SmtpProvider(Account.parse(url), clock=clock)


def _fault(error: Exception, account: Account) -> str:
    """Say why a connection came to nothing, in our words: the library's and Python's name their own functions."""
    cause = error.__cause__ if isinstance(error, SMTPConnectError) and error.__cause__ is not None else error
    match cause:
        case SMTPTimeoutError() | TimeoutError():
            return "no reply in time"
        case SMTPServerDisconnected():
            return "the server closed the connection"
        case ConnectionRefusedError():
            return f"{account.host}:{account.port} refuses connections"
        case socket.gaierror():
            return f"no address is known for the host {account.host}"
        case ssl.SSLError():
            return "the server and this program cannot agree on TLS: see the option tls"
        case OSError(errno=int(number)):
            return f"{account.host}:{account.port} cannot be reached ({os.strerror(number)})"
        case OSError():
            return f"{account.host}:{account.port} cannot be reached"
        case _:
            known = (words for name, words in _SAID.items() if name in str(error))
            return next(known, "the server does not speak SMTP as this program does")


_SAID: Final = {
    "STARTTLS extension": "the server offers no STARTTLS: see the option tls",
    "AUTH extension": "the server offers no way to log in; it may do so only over TLS: see the option tls",
    "authentication method": "the server offers no way to log in that this program knows",
}
"""What the library says in words alone, by a part of it, in ours."""


def _reason(where: str, text: str) -> str:
    """Write a reason: one line, short, and without the address that servers like to repeat."""
    return " ".join(_ADDRESS.sub("…", f"{where}: {text}").split())[:REASON_CHARS_MAX]
