"""One-time codes: erasing the data of those that are over, and refusing to send them again. Writes `notification_job`.

What counts as over is ruled by `domain.one_time_code`.
"""

from typing import Final

import msgspec

from clarion.adapters.stores.shared.statement import Statements
from clarion.adapters.stores.shared.transaction import Transaction
from clarion.domain.one_time_code import CodeStanding, Erasure, erased, is_spent
from clarion.domain.outgoing import OPEN
from clarion.ports.ensure import ITEMS_MAX

_SQL: Final = Statements("queue/one_time_code.sql")


class _Job(msgspec.Struct, frozen=True):
    id: int


class _Data(msgspec.Struct, frozen=True):
    is_erased: bool


async def erase_codes(transaction: Transaction, *, after: int, limit: int) -> Erasure:
    """Erase the data of one-time codes that are over, among the next jobs behind `after` that still have any."""
    limit = min(limit, ITEMS_MAX)
    jobs = await transaction.fetch(_Job, _SQL["lock_code_jobs"], after=after, limit=limit)
    if not jobs:
        return Erasure(0, 0)
    standings = await transaction.fetch(
        CodeStanding, _SQL["read_code_standings"], ids=[(job.id,) for job in jobs], open=sorted(OPEN)
    )
    spent = [one.id for one in standings if is_spent(one)]
    if spent:
        await transaction.execute(_SQL["erase_payloads"], ids=sorted(spent))
    return Erasure(len(spent), jobs[-1].id if len(jobs) == limit else 0)


async def require_data(transaction: Transaction, tenant_id: str, row_key: str) -> None:
    """Raise Gone where a job's data was erased; where it was not, keep it until the transaction ends."""
    for found in await transaction.fetch(_Data, _SQL["lock_code_job"], tenant_id=tenant_id, row_key=row_key):
        if found.is_erased:
            raise erased()
