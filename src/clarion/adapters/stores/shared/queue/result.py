"""Results: what came back from calls, recorded by row and claim token. What it does to a row is in `domain.ruling`."""

from collections import Counter
from collections.abc import Sequence

from clarion.adapters.stores.shared.queue.ledger import lock_rows, read_attempts, write_rulings
from clarion.adapters.stores.shared.transaction import Transaction
from clarion.domain.claim import CallResult, Recorded
from clarion.domain.outgoing import OutgoingStatus
from clarion.domain.ruling import after_result
from clarion.ports.ensure import bounded


async def record_outgoing(transaction: Transaction, results: Sequence[CallResult], *, actor: str) -> list[Recorded]:
    """Record results; several of one row, which late replies can bring together, one after the other."""
    given = [result.storable() for result in bounded(results)]
    answers: dict[int, OutgoingStatus | None] = {}
    for places in _rounds(given):
        round_ = [given[place] for place in places]
        statuses = await _record(transaction, {(one.bucket, one.id): one for one in round_}, actor=actor)
        answers |= {place: statuses.get(one.id) for place, one in zip(places, round_, strict=True)}
    return [Recorded(id=one.id, status=answers[place]) for place, one in enumerate(given)]


async def _record(
    transaction: Transaction, results: dict[tuple[int, int], CallResult], *, actor: str
) -> dict[int, OutgoingStatus | None]:
    """Record one result of each row; say where it left the row, if it was of the row's claim or moved the row."""
    rows = [(row, results[row.bucket, row.id]) for row in await lock_rows(transaction, results)]
    late = [
        (row.bucket, row.id)
        for row, result in rows
        if row.status is not OutgoingStatus.SENDING or row.claim_token != result.claim_token
    ]
    tried = await read_attempts(transaction, late)
    ruled = [(row, after_result(row, result, tried.get(row.id, ()))) for row, result in rows]
    await write_rulings(transaction, ruled, actor=actor)
    return {
        row.id: ruling.to or (row.status if row.claim_token == result.claim_token else None)
        for (row, ruling), (_, result) in zip(ruled, rows, strict=True)
    }


def _rounds(results: Sequence[CallResult]) -> list[list[int]]:
    """Share results out so that no round has two of one row; almost always there is one round."""
    seen: Counter[int] = Counter()
    rounds: list[list[int]] = []
    for place, result in enumerate(results):
        if seen[result.id] == len(rounds):
            rounds.append([])
        rounds[seen[result.id]].append(place)
        seen[result.id] += 1
    return rounds
