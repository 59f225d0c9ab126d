"""Where an SMTP account is, read from its URL.

The options stand at the top of `smtp`. Reads a file of certificates if one is named; a URL that cannot be used raises
`BadConfiguration`, which never repeats it: it may hold a password.
"""

import ssl
from datetime import timedelta
from email.utils import parseaddr
from typing import Final, Self
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from clarion.adapters.providers.mail import Mailbox
from clarion.domain.destination import normalise
from clarion.domain.header import check_header
from clarion.domain.identity import Channel
from clarion.errors import BadConfiguration, InvalidInput

TIMEOUT: Final = timedelta(seconds=9)
"""Twice: for all that comes before the content, and for the reply to it. A server that greylists or scans answers
within a few seconds."""

TIMEOUT_MAX: Final = TIMEOUT
"""Twice, it is less than the pipeline gives a call (20 s): what was not sent by then is known not to be, and with more
the pipeline would give the call up first and could not tell."""

CONNECTIONS: Final = 20
"""With as many, the fastest server that was measured is busy. Some allow three."""

CONNECTIONS_MAX: Final = 1000
"""More than any mail server takes from one client."""

_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_OPTIONS: Final = frozenset({"from", "tls", "ca", "timeout", "connections"})
_PORTS: Final = {"starttls": 587, "tls": 465, "none": 25}


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """A server, who logs in there, and who mail comes from."""

    host: str
    port: int
    sender: Mailbox
    tls: str
    username: str | None = None
    password: str | None = None
    ca: str | None = None
    timeout: timedelta = TIMEOUT
    connections: int = CONNECTIONS

    @classmethod
    def parse(cls, url: str) -> Self:
        """Read a URL, or raise BadConfiguration that does not repeat it."""
        try:
            parts = urlsplit(url)
            port = parts.port
            options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
        except ValueError:
            raise _unusable("it is not well-formed") from None
        if not parts.hostname or parts.path not in ("", "/") or parts.fragment:
            raise _unusable("it must be a host, and options behind a question mark")
        if unknown := sorted(set(options) - _OPTIONS):
            raise _unusable(f"there is no option {unknown[0]!r}; there are {', '.join(sorted(_OPTIONS))}")
        local = parts.hostname in _LOOPBACK
        tls = options.get("tls", "none" if local else "starttls")
        if tls not in _PORTS:
            raise _unusable("tls is one of starttls, tls and none")
        if parts.username and tls == "none" and not local:
            raise _unusable("a password is only sent over TLS, or to this machine")
        return cls(
            host=parts.hostname,
            port=port or _PORTS[tls],
            sender=_sender(options.get("from", "")),
            tls=tls,
            username=None if parts.username is None else unquote(parts.username),
            password=None if parts.password is None else unquote(parts.password),
            ca=options.get("ca"),
            timeout=_timeout(options.get("timeout")),
            connections=_connections(options.get("connections", str(CONNECTIONS))),
        )

    def __repr__(self) -> str:
        """Show where it is and not its password (X-25)."""
        return f"Account({self.host}:{self.port})"

    def tls_context(self) -> ssl.SSLContext | None:
        """Trust the system's authorities, and those of a file if there is one."""
        if self.tls == "none":
            return None
        context = ssl.create_default_context()
        if self.ca is not None:
            try:
                context.load_verify_locations(cafile=self.ca)
            except (OSError, ssl.SSLError) as error:
                raise _unusable(f"the file of the option ca cannot be used ({error.strerror})") from None
        return context


def _sender(text: str) -> Mailbox:
    """Read who mail comes from."""
    try:
        name, address = parseaddr(check_header(text, field="from"))
        sender = Mailbox(name=name, address=normalise(Channel.EMAIL, address))
    except InvalidInput as error:
        raise _unusable(f"the option from: {error.message}") from None
    if not sender.address.isascii():
        raise _unusable("the option from: an address outside ASCII cannot send through every server")
    return sender


def _timeout(text: str | None) -> timedelta:
    """Read a number of seconds."""
    if text is None:
        return TIMEOUT
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= TIMEOUT_MAX.total_seconds():
        raise _unusable(f"timeout is a number of seconds, at most {TIMEOUT_MAX.total_seconds():g}")
    return timedelta(seconds=seconds)


def _connections(text: str) -> int:
    """Read how many connections may be open at once."""
    number = int(text) if text.isascii() and text.isdecimal() and len(text) <= 4 else 0
    if not 1 <= number <= CONNECTIONS_MAX:
        raise _unusable(f"connections is a number from 1 to {CONNECTIONS_MAX}")
    return number


def _unusable(why: str) -> BadConfiguration:
    """Make the error for a URL that cannot be used."""
    return BadConfiguration(
        f"the SMTP account's URL cannot be used: {why}",
        hint="write smtp://user:password@host:587?from=school@example.com&tls=starttls",
    )
