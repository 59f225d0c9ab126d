"""Results: what came back from calls, recorded by row and claim token. What it does to a row is in `domain.ruling`.

A destination that its provider does not know any more is retired as a contact in the same transaction.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from clarion.adapters.stores.shared.people import retire_contacts
from clarion.adapters.stores.shared.queue.ledger import Place, lock_rows, read_attempts, write_rulings
from clarion.adapters.stores.shared.transaction import Transaction
from clarion.domain.claim import CallResult
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.ruling import after_result, retires
from clarion.ports.ensure import bounded


async def record_outgoing(transaction: Transaction, results: Sequence[CallResult], *, actor: str) -> None:
    """Record results; several of one row, which late replies can bring together, one after the other."""
    for round_ in _rounds([result.storable() for result in bounded(results)]):
        await _record(transaction, round_, actor=actor)


async def _record(transaction: Transaction, results: Mapping[Place, CallResult], *, actor: str) -> None:
    """Record one result of each row; those whose row is not there are left out."""
    rows = [(row, results[row.bucket, row.id]) for row in await lock_rows(transaction, results)]
    late = [
        (row.bucket, row.id)
        for row, result in rows
        if row.status is not OutgoingStatus.SENDING or row.claim_token != result.claim_token
    ]
    tried = await read_attempts(transaction, late)
    ruled = [(row, after_result(row, result, tried.get(row.id, ()))) for row, result in rows]
    await write_rulings(transaction, ruled, actor=actor)
    if gone := [(row.bucket, row.id) for row, result in rows if retires(result.outcome)]:
        await retire_contacts(transaction, gone)


def _rounds(results: Sequence[CallResult]) -> Sequence[Mapping[Place, CallResult]]:
    """Share results out so that no round has two of one row; almost always there is one round."""
    seen: Counter[Place] = Counter()
    rounds: dict[int, dict[Place, CallResult]] = defaultdict(dict)
    for result in results:
        place = (result.bucket, result.id)
        rounds[seen[place]][place] = result
        seen[place] += 1
    return list(rounds.values())
