"""Trying a mail account without a mail, as `clarion check` does."""

import asyncio

from clarion.adapters.providers.smtp import open_provider
from clarion.testing.clock import ManualClock
from tests.integration.smtp_server import Script, closed_port, listening, smtp_server


async def probe(port: int, *, user: str = "", seconds: float = 5) -> str:
    """Try the account at a port; return what is in the way, or nothing."""
    url = f"smtp://{user}127.0.0.1:{port}?from=school@example.com&timeout={seconds}"
    provider = await open_provider(url, clock=ManualClock())
    return await provider.probe() or ""


async def test_a_server_that_would_take_mail_is_found_well_and_gets_none() -> None:
    script = Script()
    async with smtp_server(script, auth=True) as port:
        assert not await probe(port, user="ann:open%20sesame@")
    assert script.received == []


async def test_trying_an_account_says_what_its_first_mail_would_have_met() -> None:
    port = closed_port()
    assert await probe(port) == f"connecting: 127.0.0.1:{port} refuses connections"
    async with smtp_server(Script(), auth=True) as port:
        assert (await probe(port, user="ann:sesame@")).startswith("connecting: 535")
        assert (await probe(port)).startswith("sender: 530")


async def test_a_server_that_never_greets_is_not_waited_for() -> None:
    async with listening(asyncio.Protocol) as port:
        assert (await probe(port, seconds=0.1)).startswith("connecting: ")
