"""Recording plain acceptances, as nearly every result is one: a single statement without a transaction around it.

It is the rule of `domain.ruling.after_result` for an accepted call whose row is in flight under its own claim, and
writes what `shared.queue.ledger` would. All other results are recorded by `shared.queue.result`.
"""

from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from clarion.adapters.stores.postgres import codec
from clarion.adapters.stores.postgres.session import Transaction
from clarion.adapters.stores.shared.statement import Statements
from clarion.domain.call import Accepted
from clarion.domain.claim import CallResult

_SQL: Final = Statements("accept.sql", package=__package__)


def plain(results: Sequence[CallResult]) -> list[CallResult]:
    """Give the acceptances among results; none where two results are of one row, which must keep their order."""
    if len({result.id for result in results}) < len(results):
        return []
    return [result for result in results if isinstance(result.outcome, Accepted)]


async def accept_outgoing(transaction: Transaction, results: Sequence[CallResult], *, actor: str) -> set[int]:
    """Record acceptances whose rows are in flight under their claims; return the ids of those rows."""
    ordered = sorted((result.storable() for result in results), key=attrgetter("bucket", "id"))
    tokens = {token: str(token) for token in {result.claim_token for result in ordered}}
    others = await transaction.rows(
        _SQL["accept_outgoing"],
        buckets=codec.numbers([result.bucket for result in ordered]),
        ids=codec.numbers([result.id for result in ordered]),
        tokens=codec.words([tokens[result.claim_token] for result in ordered]),
        attempts=codec.numbers([result.attempt for result in ordered]),
        hashes=codec.texts([result.content_hash for result in ordered]),
        latencies=codec.numbers([result.latency_ms for result in ordered]),
        provider_ids=codec.texts([getattr(result.outcome, "provider_message_id", None) for result in ordered]),
        actor=actor,
    )
    return {result.id for result in ordered} - {row["id"] for row in others}
