"""Messaging jobs, versions of addresses and of profiles, and inbox rows.

Writes `messaging_job`, `address_version`, `person_version`, `user_message` and `support_case`, holds scheduler rows
while it inserts inbox rows, and has `inbox` enter them.
"""

from collections.abc import Sequence
from typing import Final, TypeVar

import msgspec

from clarion.adapters.stores.shared import answer
from clarion.adapters.stores.shared.ensure import Table, ensure, first_of_each, insert_absent, keys_of, read_stored
from clarion.adapters.stores.shared.inbox import Entered, enter
from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.support import write_cases
from clarion.adapters.stores.shared.transaction import Overtaken, Transaction
from clarion.domain.address import AddressVersion
from clarion.domain.ensured import Ensured
from clarion.domain.inbox import UserMessage
from clarion.domain.messaging import MessagingJob
from clarion.domain.person import PersonVersion
from clarion.errors import BrokenInvariant
from clarion.ports.ensure import NO_HOLDS, Holds

C = TypeVar("C", AddressVersion, PersonVersion)

_SQL: Final = Statements("messaging.sql")
_JOBS: Final = Table(MessagingJob, _SQL, "messaging_jobs")
_ADDRESSES: Final = Table(AddressVersion, _SQL, "address_versions")
_PERSONS: Final = Table(PersonVersion, _SQL, "person_versions")
_USER_MESSAGES: Final = Table(UserMessage, _SQL, "user_messages")


class _Held(UserMessage, frozen=True, kw_only=True):
    """An inbox row, and the scheduler row at which version must stand while it is made."""

    hold_id: int | None
    hold_version: int | None


async def ensure_messaging_jobs(
    transaction: Transaction, tenant_id: str, items: Sequence[MessagingJob]
) -> list[Ensured[MessagingJob]]:
    """Insert the jobs that are missing."""
    return await ensure(transaction, tenant_id, items, _JOBS)


async def ensure_address_versions(
    transaction: Transaction, tenant_id: str, items: Sequence[AddressVersion]
) -> list[Ensured[AddressVersion]]:
    """Insert the versions that are missing, each with the next serial of its recipient and channel."""
    return await _ensure_counted(transaction, tenant_id, items, _ADDRESSES)


async def ensure_person_versions(
    transaction: Transaction, tenant_id: str, items: Sequence[PersonVersion]
) -> list[Ensured[PersonVersion]]:
    """Insert the versions that are missing, each with the next serial of its person."""
    return await _ensure_counted(transaction, tenant_id, items, _PERSONS)


async def _ensure_counted(
    transaction: Transaction, tenant_id: str, items: Sequence[C], table: Table[C]
) -> list[Ensured[C]]:
    """Insert what is missing with serials that are counted here; begin again where somebody else counted meanwhile.

    Then a serial that we would have given is taken, and its row was not made. Where each of ours is there, whoever took
    serials meanwhile gave them to versions of ours, so none of them was made twice.
    """
    made = await insert_absent(transaction, tenant_id, items, table)
    stored = await read_stored(transaction, tenant_id, items, table)
    if any(item.key not in stored for item in items):
        raise Overtaken
    return answer.compare(tenant_id, items, stored=stored, created=keys_of(made, stored)).answers


async def ensure_user_messages(
    transaction: Transaction, tenant_id: str, items: Sequence[UserMessage], *, holds: Holds = NO_HOLDS
) -> list[Ensured[UserMessage]]:
    """Insert the inbox rows that are missing and whose hold stands, enter them, and compare those that are there."""
    held: list[UserMessage] = []
    for item in first_of_each(items):
        hold_id, version = holds.get(item.key) or (None, None)
        held.append(_Held(**msgspec.structs.asdict(item), hold_id=hold_id, hold_version=version))
    made = await insert_absent(transaction, tenant_id, held, _USER_MESSAGES)
    stored = await read_stored(transaction, tenant_id, items, _USER_MESSAGES)
    created = keys_of(made, stored)
    await enter(transaction, [_entered(tenant_id, stored[key]) for key in sorted(created)])
    verdicts = answer.compare_held(tenant_id, items, holds=holds, stored=stored, created=created)
    await write_cases(transaction, tenant_id, verdicts.cases)
    return verdicts.answers


def _entered(tenant_id: str, line: UserMessage | None) -> Entered:
    """Give a line that was just made as its inbox takes it."""
    if line is None or line.id is None:
        raise BrokenInvariant("an inbox row was made that cannot be read")
    return Entered(
        tenant_id=tenant_id,
        recipient_id_hash=line.recipient_id_hash,
        row_key=line.row_key,
        bucket=line.bucket,
        id=line.id,
        expires_at=line.expires_at,
    )
