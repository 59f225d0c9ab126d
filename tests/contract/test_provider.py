"""The provider contract over the sandbox in this process, the sandbox over HTTP, and SMTP."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from clarion.adapters.providers import smtp
from clarion.adapters.providers.mail import message_id
from clarion.ports.provider import Provider
from clarion.sandbox import provider as sandbox
from clarion.sandbox import remote
from clarion.sandbox.fault import Options
from clarion.sandbox.ledger import Ledger
from clarion.sandbox.server import Behaviour, SandboxServer, listening
from clarion.testing.clock import ManualClock
from clarion.testing.contracts.provider import ProviderContract, Stage
from tests.integration.smtp_server import Script, smtp_server

WINDOW = timedelta(hours=24)


class LedgerStage:
    """A provider whose peer keeps a ledger."""

    def __init__(self, provider: Provider, ledger: Ledger) -> None:
        self.provider = provider
        self._ledger = ledger

    async def calls(self) -> int:
        return self._ledger.totals().calls

    async def deliveries(self, key: str) -> int:
        return self._ledger.deliveries().get(key, 0)


class SmtpStage:
    """A provider whose peer is a real mail server."""

    def __init__(self, provider: Provider, script: Script) -> None:
        self.provider = provider
        self._script = script

    async def calls(self) -> int:
        return self._script.recipients_named

    async def deliveries(self, key: str) -> int:
        ident = message_id(key, domain="example.com")
        return sum(
            received.mail["Message-ID"] == ident and received.recipients != ["fail@example.com"]
            for received in self._script.received
        )


@asynccontextmanager
async def in_process(folder: Path, query: str) -> AsyncIterator[Stage]:
    path = folder / "sandbox.db"
    provider = await sandbox.open_provider(f"sandbox://{path}{query}", clock=ManualClock())
    ledger = Ledger(path)
    yield LedgerStage(provider, ledger)
    await provider.close()
    ledger.close()


@asynccontextmanager
async def over_http(folder: Path, options: Options, query: str) -> AsyncIterator[Stage]:
    ledger = Ledger(folder / "ledger.db")
    sandbox = SandboxServer(ledger, options, behaviour=Behaviour())
    async with listening(sandbox) as port:
        provider = await remote.open_provider(f"sandbox+http://127.0.0.1:{port}{query}", clock=ManualClock())
        yield LedgerStage(provider, ledger)
        await provider.close()
    ledger.close()


class TestSandbox(ProviderContract):
    """A file of this machine."""

    @pytest.fixture
    async def stage(self, tmp_path: Path) -> AsyncIterator[Stage]:
        async with in_process(tmp_path, "") as stage:
            yield stage


class TestSandboxThatDedupes(ProviderContract):
    """A file of this machine, with a window."""

    @pytest.fixture
    async def stage(self, tmp_path: Path) -> AsyncIterator[Stage]:
        async with in_process(tmp_path, "?dedupe=24h") as stage:
            yield stage


class TestHttp(ProviderContract):
    """Another process's file."""

    @pytest.fixture
    async def stage(self, tmp_path: Path) -> AsyncIterator[Stage]:
        async with over_http(tmp_path, Options(), "") as stage:
            yield stage


class TestHttpThatDedupes(ProviderContract):
    """Another process's file, with a window."""

    @pytest.fixture
    async def stage(self, tmp_path: Path) -> AsyncIterator[Stage]:
        async with over_http(tmp_path, Options(dedupe=WINDOW), "?dedupe=24h") as stage:
            yield stage


class TestSmtp(ProviderContract):
    """A mail server on loopback."""

    @pytest.fixture
    async def stage(self) -> AsyncIterator[Stage]:
        script = Script()
        async with smtp_server(script) as port:
            provider = await smtp.open_provider(f"smtp://127.0.0.1:{port}?from=school@example.com", clock=ManualClock())
            yield SmtpStage(provider, script)
            await provider.close()
