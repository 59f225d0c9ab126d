"""The postman: brings the sandbox's receipts to the door of whoever sent the messages, signed, as a provider would.

    POST {url}/v1/receipts/{account}

At least once: a receipt waits in the sandbox's file until it was answered 2xx, and its id follows from its call, so
that a repeat is known as one. What cannot be brought now is tried again with growing pauses. A batch that is refused
for its content is halved until one receipt is left; that one is given up, so that the others get through.
"""

from collections.abc import Sequence
from datetime import timedelta
from hashlib import sha256
from typing import Final
from urllib.parse import quote

import structlog
from pyreqwest.client import Client, ClientBuilder
from pyreqwest.exceptions import PyreqwestError

from clarion.domain import signature
from clarion.ports.clock import Clock
from clarion.sandbox import report
from clarion.sandbox.ledger import delivery_id
from clarion.sandbox.provider import SandboxProvider
from clarion.sandbox.receipt import WaitingReceipt
from clarion.sandbox.report import Report

BATCH: Final = 200
"""Receipts a request: some 80 kB."""

TIMEOUT: Final = timedelta(seconds=15)
"""For one request, whose events are stored in one transaction for each tenant."""

PAUSE_MIN: Final = timedelta(seconds=1)
PAUSE_MAX: Final = timedelta(minutes=1)
"""Between attempts that fail: soon after the first, and no burden while a store is down for long."""

REFUSED: Final = frozenset({400, 413, 422})
"""The same body will be refused again."""

log = structlog.get_logger("clarion.sandbox")


class Postman:
    """Brings the receipts of one account."""

    def __init__(self, provider: SandboxProvider, *, account: str, url: str, clock: Clock) -> None:
        """Bring them to a server; connect to nothing yet."""
        self._provider = provider
        self._account = account
        self._clock = clock
        self._batch = BATCH
        self._pause = timedelta()
        self._again_at = 0.0
        self._url = f"{url}/v1/receipts/{quote(account)}"
        self._client: Client = (
            ClientBuilder()
            .timeout(TIMEOUT)
            .follow_redirects(enable=False)
            .no_proxy()
            .default_headers({"content-type": "application/json"})
            .build()
        )

    async def step(self) -> int:
        """Bring one batch; return how many receipts are done with, none while it pauses after a failure."""
        if self._clock.monotonic() < self._again_at:
            return 0
        waiting = await self._provider.waiting_receipts(limit=self._batch)
        if not waiting:
            return 0
        status = await self._post(waiting)
        if status is not None and 200 <= status <= 299:
            self._batch, self._pause = min(2 * self._batch, BATCH), timedelta()
        elif status in REFUSED and len(waiting) == 1:
            log.warning("a receipt of the sandbox was refused and is given up", account=self._account, status=status)
        elif status in REFUSED:
            self._batch = len(waiting) // 2
            return 0
        else:
            self._wait(status)
            return 0
        await self._provider.end_receipts([one.id for one in waiting])
        return len(waiting)

    async def close(self) -> None:
        """Let go of connections."""
        await self._client.close()

    async def _post(self, waiting: Sequence[WaitingReceipt]) -> int | None:
        """Post receipts; return the status of the answer, None where there was none."""
        name, secret = await self._provider.identity()
        body = report.write([_report(name, one) for one in waiting])
        # The same body has the same id, whenever it is sent.
        webhook_id = sha256(body).hexdigest()
        headers = signature.sign(secret, webhook_id=webhook_id, at=self._clock.now(), body=body)
        try:
            response = await self._client.post(self._url).headers(headers).body_bytes(body).build().send()
        except (PyreqwestError, ValueError):  # the latter where no URL can hold this host
            return None
        return response.status

    def _wait(self, status: int | None) -> None:
        """Put the next attempt off."""
        self._pause = min(max(2 * self._pause, PAUSE_MIN), PAUSE_MAX)
        self._again_at = self._clock.monotonic() + self._pause.total_seconds()
        log.warning("receipts of the sandbox cannot be brought, trying again", account=self._account, status=status)


def _report(name: str, waiting: WaitingReceipt) -> Report:
    """Write a receipt as it is reported; its id is that of its call in this file and of what it says."""
    said = waiting.receipt
    return Report(
        id="-".join((name, str(waiting.call_id), said.status.lower(), *filter(None, [said.signal]))),
        status=said.status.value,  # type: ignore[arg-type]  # one of those that evidence can show
        happened_at=said.happened_at,
        tenant_id=waiting.tenant_id,
        key=waiting.idempotency_key,
        provider_message_id=delivery_id(waiting.call_id),
        signal=None if said.signal is None else said.signal.value,
    )
