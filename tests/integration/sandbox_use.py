"""Calls to the sandbox as the pipeline makes them, and what it has to report about them."""

from datetime import timedelta
from uuid import UUID

import msgspec

from clarion.domain import key
from clarion.domain.call import Call
from clarion.domain.identity import Channel
from clarion.domain.outgoing import OutgoingStatus
from clarion.sandbox.provider import SandboxProvider
from clarion.testing.contracts.provider import call_to
from tests.unit.pipeline_line import TENANT

HASH = "0a" * 16
SECOND = timedelta(seconds=1)


def call(number: int, to: str = "ann", *, tenant_id: str = TENANT, attempt: int = 1) -> Call:
    name = key.idempotency_key(message_id=UUID(int=number), channel=Channel.EMAIL, recipient_key_hash=HASH)
    plain = call_to(to, key=name, attempt=attempt)
    return msgspec.structs.replace(plain, message_id=UUID(int=number), tenant_id=tenant_id)


async def waiting(provider: SandboxProvider) -> list[tuple[int, OutgoingStatus]]:
    return [(one.call_id, one.receipt.status) for one in await provider.waiting_receipts(limit=100)]
