"""A real SMTP server on loopback that does what the recipient's name asks for.

The server is aiosmtpd, in the test's own event loop; the script is the local part of the recipient's address, so that
one server shows every behaviour and several at once. It keeps all that it was given, answered or not.
"""

import asyncio
import socket
import ssl
import warnings
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email import message_from_bytes, policy
from email.message import EmailMessage
from ipaddress import ip_address
from pathlib import Path

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

AT_RECIPIENT = {
    "nobody": "550 5.1.1 <{}>: no such user here",
    "elsewhere": "551 user not local",
    "misnamed": "553 mailbox name not allowed",
    "blocked": "550 5.7.1 <{}>: blocked by policy",
    "broken": "554 transaction failed",
    "defer": "451 4.3.0 try again later",
    "full": "452 4.2.2 mailbox full",
    "closing": "421 4.7.0 too many connections",
    "odd": "299 whatever",
}

AFTER_CONTENT = {
    "fail": "554 5.6.0 message content rejected",
    "defer-late": "451 4.3.0 try again later",
    "large": "552 5.3.4 message too big",
    "odd-late": "354 go on",
}


class Received:
    """One mail that the server was given whole."""

    def __init__(self, envelope: Envelope) -> None:
        content = envelope.content
        assert isinstance(content, bytes)
        self.sender = envelope.mail_from
        self.recipients = envelope.rcpt_tos
        self.content = content

    @property
    def mail(self) -> EmailMessage:
        """The mail as the standard library reads it."""
        parsed = message_from_bytes(self.content, policy=policy.default)
        assert isinstance(parsed, EmailMessage)
        return parsed


class Script:
    """What the server does, and what it has seen."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.sessions: list[Session] = []
        self.recipients_named = 0
        self.stalled = asyncio.Event()  # somebody is kept waiting
        self.over = asyncio.Event()  # lets go of those who are

    async def handle_EHLO(  # noqa: N802  (aiosmtpd's name)
        self, _server: SMTP, session: Session, _envelope: Envelope, hostname: str, replies: list[str]
    ) -> list[str]:
        session.host_name = hostname
        self.sessions.append(session)
        return replies

    async def handle_RCPT(  # noqa: N802  (aiosmtpd's name)
        self, server: SMTP, _session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        self.recipients_named += 1
        word = address.partition("@")[0]
        if word == "hang-up":
            drop(server)
        if word == "stall":
            await self._stall()
        if word in AT_RECIPIENT:
            return AT_RECIPIENT[word].format(address)
        envelope.rcpt_tos.append(address)
        envelope.rcpt_options.extend(options)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, _session: Session, envelope: Envelope) -> str:  # noqa: N802  (aiosmtpd's name)
        self.received.append(Received(envelope))
        word = envelope.rcpt_tos[0].partition("@")[0]
        if word in ("unknown", "lost"):
            drop(server)
        if word == "stall-late":
            await self._stall()
        if word == "garbage":
            return "what? this is no reply"
        return AFTER_CONTENT.get(word, "250 2.0.0 Ok: queued as 4XYZ")

    async def _stall(self) -> None:
        self.stalled.set()
        await self.over.wait()


def drop(server: SMTP) -> None:
    """Cut the connection without a word."""
    assert isinstance(server.transport, asyncio.WriteTransport)
    server.transport.abort()


def authenticator(_server: SMTP, _session: Session, _envelope: Envelope, mechanism: str, data: object) -> AuthResult:
    """Let in whoever knows the password."""
    password = getattr(data, "password", b"")
    return AuthResult(success=mechanism in ("LOGIN", "PLAIN") and password == b"open sesame", handled=False)


@asynccontextmanager
async def smtp_server(
    script: Script, *, auth: bool = False, tls: ssl.SSLContext | None = None, starttls: bool = False
) -> AsyncIterator[int]:
    """Serve until the block ends, and say on which port."""
    loop = asyncio.get_running_loop()

    def session() -> SMTP:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a password may come without TLS is what these tests want to see
            return SMTP(
                script,
                hostname="mx.example.com",
                loop=loop,
                enable_SMTPUTF8=True,
                authenticator=authenticator if auth else None,
                auth_required=auth,
                auth_require_tls=False,
                tls_context=tls if starttls else None,
                require_starttls=starttls,
            )

    async with listening(session, tls=None if starttls else tls) as port:
        yield port
        script.over.set()


@asynccontextmanager
async def listening(
    protocol: Callable[[], asyncio.BaseProtocol], *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    """Listen on a free port of this machine."""
    server = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0, ssl=tls)
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()


def closed_port() -> int:
    """A port of this machine on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Certificates:
    """An authority of our own, and a server's certificate signed by it."""

    def __init__(self, folder: Path) -> None:
        key, name = ec.generate_private_key(ec.SECP256R1()), _name("test authority")
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        authority = (
            _certificate(name, issuer=name, public=key.public_key(), signer=key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .sign(key, hashes.SHA256())
        )
        server_key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.IPAddress(ip_address("127.0.0.1")), x509.DNSName("localhost")]
        leaf = (
            _certificate(_name("test server"), issuer=name, public=server_key.public_key(), signer=key.public_key())
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .sign(key, hashes.SHA256())
        )
        self.authority = folder / "authority.pem"
        self.authority.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
        chain = folder / "server.pem"
        chain.write_bytes(
            leaf.public_bytes(serialization.Encoding.PEM)
            + server_key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        self.server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.server.load_cert_chain(chain)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _certificate(
    subject: x509.Name, *, issuer: x509.Name, public: ec.EllipticCurvePublicKey, signer: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    """Begin a certificate that is valid for as long as these tests can matter."""
    begin = datetime(2020, 1, 1, tzinfo=UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + timedelta(days=365 * 80))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer), critical=False)
    )


class Greets(asyncio.Protocol):
    """A server that says one thing and hangs up."""

    def __init__(self, greeting: bytes) -> None:
        self.greeting = greeting

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(self.greeting)
        transport.close()
